"""The reactor, once for all tests, since a process has one; and a site for each test."""

from collections.abc import Iterator

import pytest

from tests.frameworks.scrapy.crawls import Reactor, serving
from tests.integrations.site import Site


@pytest.fixture(scope="session")
def reactor() -> Iterator[Reactor]:
    reactor = Reactor()
    yield reactor
    reactor.stop()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site
