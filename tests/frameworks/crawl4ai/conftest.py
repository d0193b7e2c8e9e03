"""crawl4ai's folder, which it makes when it is imported, is one of the tests' own; and a site for each test."""

import os
import shutil
import tempfile

import pytest

FOLDER = os.environ["CRAWL4_AI_BASE_DIRECTORY"] = tempfile.mkdtemp(prefix="crawl4ai-")
os.environ["CRAWL4AI_NO_CLOUD_NOTICE"] = "1"

from tests.frameworks.crawl4ai.crawls import serving


@pytest.fixture(scope="session", autouse=True)
def _folder():
    yield
    shutil.rmtree(FOLDER)


@pytest.fixture
async def hosts():
    async with serving() as hosts:
        yield hosts
