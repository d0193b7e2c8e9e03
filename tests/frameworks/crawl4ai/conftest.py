"""crawl4ai's folder, which it makes when it is imported, is one of the tests' own; and a site for each test."""

import os
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator

import pytest

FOLDER = os.environ["CRAWL4_AI_BASE_DIRECTORY"] = tempfile.mkdtemp(prefix="crawl4ai-")
os.environ["CRAWL4AI_NO_CLOUD_NOTICE"] = "1"

with warnings.catch_warnings():
    # A `return` in a `finally`: Python 3.14 warns as it compiles crawl4ai.
    warnings.simplefilter("ignore", SyntaxWarning)
    import crawl4ai  # noqa: F401

from tests.frameworks.crawl4ai.crawls import Hosts, serving


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Later Pythons warn of a function that crawl4ai calls, and of its cache, which it leaves open."""
    for item in items:
        if "crawl4ai" in item.path.parts:
            for said in (
                "'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning",
                "unclosed database:ResourceWarning",
                "Exception ignored while finalizing database:pytest.PytestUnraisableExceptionWarning",
            ):
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{said}"))


@pytest.fixture(scope="session", autouse=True)
def _folder() -> Iterator[None]:
    yield
    shutil.rmtree(FOLDER)


@pytest.fixture
async def hosts() -> AsyncIterator[Hosts]:
    async with serving() as hosts:
        yield hosts
