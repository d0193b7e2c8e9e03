"""A site for each test, and crawlee as a new process finds it."""

import time

import pytest
from crawlee import service_locator

from tests.frameworks.crawlee.crawls import judge
from tests.integrations.site import served


@pytest.fixture(autouse=True)
def _a_new_process(monkeypatch, tmp_path):
    monkeypatch.setenv("CRAWLEE_STORAGE_DIR", str(tmp_path))
    forget()


def forget() -> None:
    """Forget crawlee's services and open storages, as the end of a process does."""
    service_locator._configuration = None
    service_locator._event_manager = None
    service_locator._storage_client = None
    service_locator.storage_instance_manager.clear_cache()


@pytest.fixture
async def site():
    """A site whose requests are judged at the end. A test that has several gates, or others' requests, clears its hits."""
    async with served(time.monotonic) as site:
        yield site
    judge(site)
