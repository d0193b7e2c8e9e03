"""The page on crawlee, and the five lines, run as they are, on a site on loopback."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import polite

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}


def examples(page: str) -> list[tuple[str, str]]:
    """Return the Python blocks that use the integration, with what they print."""
    text = (ROOT / page).read_text()
    found = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL)
    return [(code, printed) for code, printed in found if "polite.integrations.crawlee" in code]


@pytest.mark.parametrize("page", ["docs/how-to/crawlee.md", "docs/how-to/five-lines.md"])
async def test_examples_print_what_the_page_says(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        status = 200 if request.path in PAGES else 404
        return web.Response(status=status, text=PAGES.get(request.path, ""))

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    open_gate, mains = polite.open_gate, []
    fetching = polite.FetchPolicy(allow_private=True)

    def opened(agent: str, **options: Any) -> Any:
        return open_gate(agent, fetching=fetching, pacing=polite.PacingPolicy(min_delay=0.1), **options)

    monkeypatch.setattr(polite, "open_gate", opened)
    monkeypatch.setattr(asyncio, "run", mains.append)
    try:
        for code, printed in examples(page):
            names: dict[str, Any] = {"asyncio": asyncio, "polite": polite}
            exec(code.replace("https://example.com/", f"{base}/"), names)  # noqa: S102 - it is our own page
            await mains.pop()

            assert capsys.readouterr().out.replace(base, "https://example.com") == printed
            assert printed
    finally:
        await runner.cleanup()
    assert examples(page)
