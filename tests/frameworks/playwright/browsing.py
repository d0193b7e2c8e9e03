"""A site on loopback that notes each request, and a gate for a browser that visits it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiohttp import web

import polite
from polite import open_gate
from tests.integrations import site
from tests.integrations.site import AGENT, LOOPBACK

DELAY_S = 0.2
# What a clock may tell too early, and the kernel deliver too fast.
TOLERANCE_S = 0.001
_OFF = "gpu quic background-networking component-update sync".split()
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in _OFF)]


@dataclass
class Site(site.Site):
    """A server on two addresses, which are two origins. What begins with /hang gets no response.

    Attributes:
        pages: The text of a path, or where it redirects to if that begins with `->`.
    """

    pages: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return [path for path in super().paths if path != "/favicon.ico"]

    def short(self, *paths: str) -> list[tuple[str, str]]:
        """Return the pairs of requests for these paths whose gap was shorter than the delay."""
        hits = [hit for hit in self.hits if hit.raw in paths]
        return [
            (before.raw, after.raw)
            for before, after in pairwise(hits)
            if after.at - before.at < DELAY_S - TOLERANCE_S
        ]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/hang"):
            self.answers[request.path] = self._hang
        elif request.path in self.pages:
            self.answers[request.path] = self._said
        return await super().answer(request)

    def page(self, request: web.BaseRequest) -> web.Response:
        text = self.pages.get(request.path, "<title>page</title>")
        if text.startswith("->"):
            return web.Response(status=302, headers={"Location": text.removeprefix("->")})
        kind = "text/javascript" if request.path.endswith(".js") else "text/html"
        return web.Response(text=text, content_type=kind)

    async def _said(self, request: web.BaseRequest) -> web.StreamResponse:
        return self.page(request)

    async def _hang(self, request: web.BaseRequest) -> web.StreamResponse:
        await self.cut.wait()
        return self.page(request)


def serving() -> AbstractAsyncContextManager[Site]:
    return site.served(time.monotonic, kind=Site)


def opened(agent: str = AGENT, **options: Any) -> AbstractAsyncContextManager[polite.Gate]:
    pacing = polite.PacingPolicy(**{"min_delay": DELAY_S, **options})
    return open_gate(agent, fetching=LOOPBACK, pacing=pacing)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
