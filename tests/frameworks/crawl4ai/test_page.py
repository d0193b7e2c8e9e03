"""The page on crawl4ai, and the five lines, run as they are, on a site on loopback."""

import asyncio
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import polite
from tests.frameworks.crawl4ai.crawls import Hosts, page

ROOT = Path(__file__).resolve().parents[3]


def examples(name: str) -> list[tuple[str, str]]:
    """Return the Python blocks that use the integration, with what they print."""
    text = (ROOT / name).read_text()
    found = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL)
    return [(code, printed) for code, printed in found if "polite.integrations.crawl4ai" in code]


@pytest.mark.parametrize("name", ["docs/how-to/crawl4ai.md", "docs/how-to/five-lines.md"])
async def test_examples_print_what_the_page_says(
    name: str, hosts: Hosts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def robots(_: Any) -> Any:
        return aiohttp.web.Response(text="User-agent: *\nDisallow: /private/\n")

    hosts.answers["/robots.txt"] = robots
    hosts.links["/"] = ["/about", "/private/diary"]
    base = hosts.url("/")
    open_gate, mains = polite.open_gate, []
    fetching = polite.FetchPolicy(allow_private=True)

    def opened(agent: str, **options: Any) -> Any:
        return open_gate(agent, fetching=fetching, pacing=polite.PacingPolicy(min_delay=0.1), **options)

    monkeypatch.setattr(polite, "open_gate", opened)
    monkeypatch.setattr(asyncio, "run", mains.append)
    monkeypatch.setattr(
        aiohttp,
        "TCPConnector",
        lambda **_: polite.guarded_connector(fetching, resolver={"no.test": "127.0.0.1"}),
    )
    for code, printed in examples(name):
        names: dict[str, Any] = {"asyncio": asyncio, "polite": polite}
        exec(code.replace("https://example.com/", base), names)  # noqa: S102 - it is our own page
        await mains.pop()

        # What crawl4ai itself logs goes there, too.
        out = capsys.readouterr().out.replace(base, "https://example.com/").splitlines()
        assert [line for line in out if line in printed.splitlines()] == printed.splitlines()
    assert examples(name)


async def test_the_site_of_the_examples_is_no_wall() -> None:
    from crawl4ai.antibot_detector import is_blocked

    assert is_blocked(200, page("/").text or "") == (False, "")
