"""One Chromium for all tests, and a site and a context for each."""

import shutil

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright

from tests.frameworks.playwright.browsing import FLAGS, serving

CHROMIUM = shutil.which("chromium")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if CHROMIUM is None:
            item.add_marker(pytest.mark.skip("no Chromium is installed: apt-get install chromium"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser):
    async with await browser.new_context() as context:
        yield context


@pytest_asyncio.fixture(loop_scope="session")
async def site():
    async with serving() as site:
        yield site
