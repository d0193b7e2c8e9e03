"""The steps of a plan, taken on a machine: puts, requests to the gate, changes of policy and clock, and of workers."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

from polite.errors import Overloaded, PermitMisused, StoreFailed
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.pacing.policy import Anchor
from polite.robots.decision import Disallowed, RobotsUnreachable
from tests.simulation.judge import Request
from tests.simulation.ledger import Due, Ledger, drawn_draft
from tests.simulation.loop import SimulationLoop
from tests.simulation.machine import Machine
from tests.simulation.plan import FOLDERS, Step, origin_of
from tests.simulation.running_frontier import EXPECTED, REFUSALS
from tests.simulation.scene import Scene


class StepRunner:
    """Takes the steps of a plan at their times."""

    def __init__(self, scene: Scene, loop: SimulationLoop, machine: Machine) -> None:
        self._scene = scene
        self._plan = scene.plan
        self._trace = scene.trace
        self._loop = loop
        self._machine = machine

    async def run(self, steps: tuple[Step, ...]) -> None:
        """Take the steps, and wait for all of them. Steps may overlap."""
        tasks: list[asyncio.Task[None]] = []
        for step in steps:
            wait = step.at - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            self._trace.note("step", step.kind, step.number)
            tasks.append(self._loop.create_task(self._take(step)))
        if tasks:
            await asyncio.gather(*tasks)

    async def _take(self, step: Step) -> None:
        actions: dict[str, Callable[[Step], Coroutine[Any, Any, None]]] = {
            "put": self._put,
            "permit": self._permit,
            "check": self._check,
            "explain": self._explain,
            "hold": self._hold_permits,
            "pacing": self._set_pacing,
            "wall": self._set_wall,
            "pause": self._pause,
            "cancel": self._cancel_worker,
            "worker": self._add_worker,
        }
        action = actions[step.kind](step)
        patience = dict(step.options).get("patience")
        if patience is None:
            await action
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await action

    def _url(self, step: Step, at: int, query: str = "") -> str:
        chance = Random(f"{self._plan.seed} {step.number} {at}")
        page = step.number * 100 + at if chance.random() < 0.95 else 0
        return f"{self._plan.sites[step.sites[at]].origin}/{chance.choice(FOLDERS)}/{page}{query}"

    # Frontiers.

    async def _put(self, step: Step) -> None:
        running = self._machine.frontiers[step.frontier]
        if running.closing:
            return
        ledger = running.ledger
        later = step.option("later") or None
        again = bool(step.option("again"))
        chance = Random(f"{self._plan.seed} {step.number}")
        query = f"?f={step.frontier}"
        urls = list(dict.fromkeys(self._url(step, at, query) for at in range(len(step.sites))))
        # Only page 0 is put by several steps.
        once = {url: not url.endswith(f"/0{query}") for url in urls}
        wall = self._machine.clock.wall()
        drafts = {url: drawn_draft(chance, url, wall, later, keyed=once[url], once=once[url]) for url in urls}
        if many := bool(step.option("many")):
            unique = not all(once.values()) or step.number % 2 == 0
            drafts = dict.fromkeys(urls, drafts[urls[0]]._replace(key=None, unique=unique))
        dues = {url: ledger.put_began(url, drafts[url], later=later, again=again) for url in urls}
        if many:
            options: Any = drafts[urls[0]]._asdict()
            del options["key"]
            admissions = await running.frontier.put_many(urls, again=again, **options)
            for url, admission in zip(urls, admissions, strict=True):
                self._put_returned(ledger, url, admission.value, dues[url])
            return
        for url in urls:
            admission = await running.frontier.put(url, again=again, **drafts[url]._asdict())
            self._put_returned(ledger, url, admission.value, dues[url])

    def _put_returned(self, ledger: Ledger, url: str, admission: str, due: Due) -> None:
        self._trace.note("put", url, admission)
        ledger.put_returned(url, admission, due)

    async def _pause(self, step: Step) -> None:
        await self._machine.frontiers[step.frontier].pause(step.option("for"))

    async def _cancel_worker(self, step: Step) -> None:
        self._machine.frontiers[step.frontier].cancel_worker(step.number)

    async def _add_worker(self, step: Step) -> None:
        self._machine.frontiers[step.frontier].add_worker()

    # The gate.

    async def _permit(self, step: Step) -> None:
        url = self._url(step, 0)
        permit = self._machine.gate.permit(url)
        await self._wait(url, self._scene.visitor.use(permit, None, span=self._plan.span))

    async def _check(self, step: Step) -> None:
        url = self._url(step, 0)

        async def check() -> None:
            decision = await self._machine.gate.check(url)
            if not decision.allowed:
                self._scene.judge.refused(url, decision.reason.name)

        await self._wait(url, check())

    async def _explain(self, step: Step) -> None:
        url = self._url(step, 0)

        async def explain() -> None:
            await self._machine.gate.explain(url)

        await self._wait(url, explain())

    async def _wait(self, url: str, work: Coroutine[Any, Any, None]) -> None:
        """Await a request to the gate. Check that a refusal has a cause."""
        with self._machine.waiting(url):
            try:
                await work
            except RobotsUnreachable:
                self._scene.progress.refused(origin_of(url))
            except Disallowed as error:
                self._scene.judge.refused(url, error.decision.reason.name)
                self._scene.progress.refused(origin_of(url))
            except Overloaded:
                if self._plan.robots.max_origins >= len(self._plan.sites):
                    self._trace.fail("Overloaded only at max_origins", url)
            except StoreFailed:
                if "store" not in self._plan.faults:
                    self._trace.fail("no error without a cause", "store")
            except EXPECTED:
                pass

    async def _hold_permits(self, step: Step) -> None:
        chance = Random(f"{self._plan.seed} {step.number}")
        urls = {origin_of(url): url for url in (self._url(step, at) for at in range(len(step.sites)))}
        await HeldPermits(self._scene, self._loop, self._machine.gate).run(urls, chance)

    # The policy and the clock.

    async def _set_pacing(self, step: Step) -> None:
        """Set a policy, perhaps often, with alternating anchors. A turn may be reported under one and left under the other."""
        gate, anchors = self._machine.gate, [Anchor.END, Anchor.FIRST_BYTE]
        for number in range(int(step.option("times", 1.0))):
            pacing = replace(
                gate.pacing,
                min_delay=step.option("min_delay"),
                concurrency=int(step.option("concurrency")),
                anchor=anchors[(int(step.option("end")) + number) % 2],
                max_crawl_delay=300.0 if step.option("crawl") else gate.pacing.max_crawl_delay,
            )
            self._scene.judge.set_pacing(pacing)
            self._scene.progress.pacing = pacing
            gate.pacing = pacing
            await asyncio.sleep(step.option("every"))

    async def _set_wall(self, step: Step) -> None:
        self._machine.clock.step_wall(step.option("by"))
        self._scene.progress.wall_was_set(step.option("by"))
        self._scene.judge.robots.wall_was_set = True
        for ledger in self._scene.ledgers:
            ledger.wall_was_set = True


class HeldPermits:
    """Permits that one task holds at the same time."""

    def __init__(self, scene: Scene, loop: SimulationLoop, gate: Gate) -> None:
        self._scene = scene
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
        held = self._scene.judge.crawl_limit or self._redirects_to_held(origin)
        misused = (PermitMisused,) if held else ()
        with suppress(TimeoutError, *REFUSALS, *misused):
            async with asyncio.timeout(600):
                await permit.__aenter__()
                self._scene.visitor.received += 1
                self._scene.progress.granted(origin)
                request = self._scene.judge.permit_entered(permit.url, self._loop.time())
                self._held.append((permit, request))

    def _redirects_to_held(self, origin: str) -> bool:
        """Return whether redirects of the origin's robots.txt may lead to an origin whose permit is held."""
        plan = self._scene.plan
        origins = {request.origin for _, request in self._held}
        sites = (site for site in plan.sites if site.origin == origin)
        return any(each.origin in origins for site in sites for each in plan.redirect_sites(site))

    async def _leave(self, permit: Permit, request: Request) -> None:
        if not self._scene.sites.ended:
            self._scene.judge.permit_left(request)
            self._scene.progress.responded(request.origin, failed=False)
            self._scene.progress.released(request.origin)
        await permit.__aexit__(None, None, None)

    async def _request_again(self, url: str) -> None:
        """Request a turn that the task holds. Without concurrency, waiting for it would deadlock."""
        judge = self._scene.judge
        if judge.pacing.concurrency > 1 or judge.crawl_limit:
            return
        permit = self._gate.permit(url)
        try:
            async with asyncio.timeout(1_000):
                await permit.__aenter__()
        except (PermitMisused, *REFUSALS):
            return
        except TimeoutError:
            if judge.pacing.concurrency == 1:
                self._scene.trace.fail("a task that would deadlock gets an error", url)
            return
        await permit.__aexit__(None, None, None)
        self._scene.visitor.received += 1
