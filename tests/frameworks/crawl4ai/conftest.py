"""crawl4ai's folder, which it makes when it is imported, is one of the tests' own; and a site for each test."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest

FOLDER = os.environ["CRAWL4_AI_BASE_DIRECTORY"] = tempfile.mkdtemp(prefix="crawl4ai-")
os.environ["CRAWL4AI_NO_CLOUD_NOTICE"] = "1"

from tests.frameworks.crawl4ai.crawls import Hosts, serving


@pytest.fixture(scope="session", autouse=True)
def _folder() -> Iterator[None]:
    yield
    shutil.rmtree(FOLDER)


@pytest.fixture
async def hosts() -> AsyncIterator[Hosts]:
    async with serving() as hosts:
        yield hosts
