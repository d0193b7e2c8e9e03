"""The reactor, once for all tests, since a process has one; and a site for each test."""

import pytest

from tests.frameworks.scrapy.crawls import Reactor, serving


@pytest.fixture(scope="session")
def reactor():
    reactor = Reactor()
    yield reactor
    reactor.stop()


@pytest.fixture
def site():
    with serving() as site:
        yield site
