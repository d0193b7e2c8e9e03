"""The page on Playwright, and the five lines, run as they are, on a site on loopback."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserType

import polite
from tests.frameworks.playwright.browsing import FLAGS, Site, opened
from tests.frameworks.playwright.conftest import CHROMIUM

ROOT = Path(__file__).resolve().parents[3]


def examples(name: str) -> list[tuple[str, str]]:
    """Return the Python blocks that use the integration, with what they print."""
    found = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", (ROOT / name).read_text(), re.DOTALL)
    return [(code, printed) for code, printed in found if "polite.integrations.playwright" in code]


@pytest.mark.parametrize("name", ["docs/how-to/playwright.md", "docs/how-to/five-lines.md"])
async def test_examples_print_what_the_page_says(
    name: str, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}
    mains: list[Any] = []
    launch = BrowserType.launch
    monkeypatch.setattr(
        BrowserType, "launch", lambda kind: launch(kind, executable_path=CHROMIUM, args=FLAGS)
    )
    monkeypatch.setattr(polite, "open_gate", opened)
    monkeypatch.setattr(asyncio, "run", mains.append)
    for code, printed in examples(name):
        names: dict[str, Any] = {"asyncio": asyncio, "polite": polite}
        exec(code.replace("https://example.com/", f"{site.url}/"), names)  # noqa: S102 - it is our own page
        await mains.pop()

        assert capsys.readouterr().out.replace(f"{site.url}/", "https://example.com/") == printed
    assert examples(name)
