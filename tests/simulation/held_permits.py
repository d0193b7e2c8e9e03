"""One task that holds permits of several origins at once, and requests one more than it may."""

import asyncio
from contextlib import suppress
from random import Random

from polite.errors import PermitMisused
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from tests.simulation.gaps import Request
from tests.simulation.loop import SimulationLoop
from tests.simulation.parts import Parts
from tests.simulation.running_frontier import REFUSALS


class HeldPermits:
    """Permits that one task holds at the same time."""

    def __init__(self, parts: Parts, loop: SimulationLoop, gate: Gate) -> None:
        self._parts = parts
        self._loop = loop
        self._gate = gate
        self._held: list[tuple[Permit, Request]] = []

    async def run(self, urls: dict[str, str], chance: Random) -> None:
        """Enter a permit for each origin's URL, then leave them in random order.

        Between two of them, the task may request another turn of an origin that it holds.
        """
        try:
            for origin in sorted(urls):
                await self._enter(origin, urls[origin])
            chance.shuffle(self._held)
            while self._held:
                await self._leave(*self._held.pop())
                if self._held and chance.random() < 0.5:
                    await self._request_again(self._held[-1][0].url)
        finally:
            for permit, request in self._held:
                await self._leave(permit, request)

    async def _enter(self, origin: str, url: str) -> None:
        permit = self._gate.permit(url)
        # A scope of the whole crawl may be held already, and so may an origin that a redirect of robots.txt leads to.
        held = self._parts.judge.has_crawl_scope or self._redirects_to_held(origin)
        misused = (PermitMisused,) if held else ()
        with suppress(TimeoutError, *REFUSALS, *misused):
            async with asyncio.timeout(600):
                await permit.__aenter__()
                self._parts.visitor.received += 1
                self._parts.progress.granted(origin)
                request = self._parts.judge.permit_entered(permit.url, self._loop.time())
                self._held.append((permit, request))

    def _redirects_to_held(self, origin: str) -> bool:
        """Return whether redirects of the origin's robots.txt may lead to an origin whose permit is held."""
        plan = self._parts.plan
        origins = {request.origin for _, request in self._held}
        sites = (site for site in plan.sites if site.origin == origin)
        return any(each.origin in origins for site in sites for each in plan.redirect_sites(site))

    async def _leave(self, permit: Permit, request: Request) -> None:
        if not self._parts.sites.ended:
            self._parts.judge.permit_left(request)
            self._parts.progress.responded(request.origin, failed=False)
            self._parts.progress.released(request.origin)
        await permit.__aexit__(None, None, None)

    async def _request_again(self, url: str) -> None:
        """Request a turn that the task holds. Without concurrency, waiting for it would deadlock."""
        judge = self._parts.judge
        if judge.pacing.concurrency > 1 or judge.has_crawl_scope:
            return
        permit = self._gate.permit(url)
        try:
            async with asyncio.timeout(1_000):
                await permit.__aenter__()
        except (PermitMisused, *REFUSALS):
            return
        except TimeoutError:
            if judge.pacing.concurrency == 1:
                self._parts.trace.fail("a task that would deadlock gets an error", url)
            return
        await permit.__aexit__(None, None, None)
        self._parts.visitor.received += 1
