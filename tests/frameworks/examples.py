"""What the frameworks share: the examples of a page of the docs, run as they are on a site on loopback; and a signer."""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import polite
from tests.integrations.site import Site

ROOT = Path(__file__).resolve().parents[2]
PRACTICE = "http://127.0.0.1:8031/"


class Signer:
    """Says what it signed; it does not sign `/plain`, and has no key for `/unsigned`."""

    def sign(self, method: str, target: polite.Target, now: float) -> Mapping[str, str]:
        if target.path == "/unsigned":
            raise OSError("no key")
        return {} if target.path == "/plain" else {"Signature": f"{method} {target.url}"}


SIGNER = Signer()


def hops_to_sign(site: Site) -> list[str]:
    return [f"{site.url('/hop')}?to={site.urls[1]}/end", f"{site.url('/hop/2')}?to=/plain"]


def require_signatures(site: Site) -> None:
    """See that each request of these hops has the signature for its own URL."""
    signed = {f"{hit.url}{hit.raw}": hit.headers.get("Signature") for hit in site.hits}
    assert signed.pop(site.url("/plain")) is None
    assert len(signed) == 5
    assert all(signature == f"GET {url}" for url, signature in signed.items())


async def require_what_the_page_says(framework, base, monkeypatch, printed, *, logs=False) -> None:
    """Run the Python blocks of the framework's page that use its integration.

    Args:
        framework: Its name.
        base: The URL of the site, in the place of the practice site's.
        monkeypatch: Opens gates with a short delay.
        printed: Returns what was printed since it was called last.
        logs: Whether the framework prints more.
    """
    open_gate = polite.open_gate
    mains: list[Awaitable[None]] = []

    def opened(agent: str, **options: Any) -> Any:
        return open_gate(agent, pacing=polite.PacingPolicy(min_delay=0.1), **options)

    monkeypatch.setattr(polite, "open_gate", opened)
    monkeypatch.setattr(asyncio, "run", mains.append)
    text = (ROOT / "docs/how-to" / f"{framework}.md").read_text()
    found = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL)
    examples = [each for each in found if f"polite.integrations.{framework}" in each[0]]
    assert examples
    for code, says in examples:
        names: dict[str, Any] = {"asyncio": asyncio, "polite": polite}
        exec(code.replace(PRACTICE, base), names)  # noqa: S102 - it is our own page
        await mains.pop()

        lines = printed().replace(base, PRACTICE).splitlines()
        wanted = says.splitlines()
        assert [line for line in lines if not logs or line in wanted] == wanted, lines
