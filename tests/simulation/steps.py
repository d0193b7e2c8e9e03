"""The steps of a plan, taken on a machine: puts, requests to the gate, changes of policy and clock, and of workers."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

from polite.errors import Overloaded, PermitMisused, StoreFailed
from polite.gate.permit import Permit
from polite.pacing.policy import Anchor
from polite.robots.decision import Disallowed, RobotsUnreachable
from tests.simulation.judge import Request
from tests.simulation.ledger import drawn_draft
from tests.simulation.machine import Machine
from tests.simulation.plan import FOLDERS, Step, origin_of
from tests.simulation.running_frontier import EXPECTED, REFUSALS
from tests.simulation.scene import Scene


class StepRunner:
    """Takes the steps of a plan at their times."""

    def __init__(self, scene: Scene, machine: Machine) -> None:
        self._scene = scene
        self._plan = scene.plan
        self._trace = scene.trace
        self._machine = machine

    async def run(self, steps: tuple[Step, ...]) -> None:
        """Take the steps, and wait for all of them. Steps may overlap."""
        tasks: list[asyncio.Task[None]] = []
        for step in steps:
            wait = step.at - self._scene.now()
            if wait > 0:
                await asyncio.sleep(wait)
            self._trace.note("step", step.kind, step.number)
            tasks.append(asyncio.create_task(self._take(step)))
        if tasks:
            await asyncio.gather(*tasks)

    async def _take(self, step: Step) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(dict(step.options).get("patience")):
                await self._action(step)

    async def _action(self, step: Step) -> None:
        gate, url = self._machine.gate, self._url(step, 0)
        match step.kind:
            case "put":
                await self._put(step)
            case "permit":
                await self._wait(url, self._scene.visitor.use(gate.permit(url), None))
            case "check":
                await self._wait(url, self._check(url))
            case "explain":
                await self._wait(url, gate.explain(url))
            case "hold":
                await self._hold_permits(step)
            case "pacing":
                await self._set_pacing(step)
            case "wall":
                self._set_wall(step.option("by"))
            case "pause":
                await self._machine.frontiers[step.frontier].pause(step.option("for"))
            case "cancel":
                self._machine.frontiers[step.frontier].cancel_worker(step.number)
            case _:
                self._machine.frontiers[step.frontier].add_worker()

    def _url(self, step: Step, at: int, query: str = "") -> str:
        chance = Random(f"{self._plan.seed} {step.number} {at}")
        page = step.number * 100 + at if chance.random() < 0.95 else 0
        return f"{self._plan.sites[step.sites[at]].origin}/{chance.choice(FOLDERS)}/{page}{query}"

    async def _put(self, step: Step) -> None:
        running = self._machine.frontiers[step.frontier]
        if running.closing:
            return
        ledger = running.ledger
        later, again = step.option("later") or None, bool(step.option("again"))
        chance = Random(f"{self._plan.seed} {step.number}")
        query = f"?f={step.frontier}"
        urls = list(dict.fromkeys(self._url(step, at, query) for at in range(len(step.sites))))
        # Only page 0 is put by several steps.
        once = {url: not url.endswith(f"/0{query}") for url in urls}
        wall = self._scene.wall()
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
                ledger.put_returned(url, admission.value, dues[url])
            return
        for url in urls:
            wait = step.number % 4 != 2 or not once[url]
            full = running.frontier.waiting >= running.plan.max_waiting
            try:
                admission = await running.frontier.put(url, again=again, wait=wait, **drafts[url]._asdict())
            except Overloaded:
                if wait or not full:
                    self._trace.fail("Overloaded only at max_waiting", url)
                ledger.put_failed(url)
            else:
                ledger.put_returned(url, admission.value, dues[url])

    # The gate.

    async def _check(self, url: str) -> None:
        decision = await self._machine.gate.check(url)
        if not decision.allowed:
            self._scene.judge.refused(url, decision.reason.name)

    async def _wait(self, url: str, work: Coroutine[Any, Any, object]) -> None:
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

    # Permits that one task holds at the same time.

    async def _hold_permits(self, step: Step) -> None:
        """Enter a permit for each origin's URL, then leave them in random order.

        Between two of them, the task may request another turn of an origin that it holds.
        """
        chance = Random(f"{self._plan.seed} {step.number}")
        urls = {origin_of(url): url for url in (self._url(step, at) for at in range(len(step.sites)))}
        held: list[tuple[Permit, Request]] = []
        try:
            for origin in sorted(urls):
                await self._enter(origin, urls[origin], held)
            chance.shuffle(held)
            while held:
                await self._leave(*held.pop())
                if held and chance.random() < 0.5:
                    await self._request_again(held[-1][0].url)
        finally:
            for permit, request in held:
                await self._leave(permit, request)

    async def _enter(self, origin: str, url: str, held: list[tuple[Permit, Request]]) -> None:
        permit = self._machine.gate.permit(url)
        # A scope of the whole crawl may be held already, and so may an origin that a redirect of robots.txt leads to.
        origins = {request.origin for _, request in held}
        site = next(site for site in self._plan.sites if site.origin == origin)
        redirects = any(each.origin in origins for each in self._plan.redirect_sites(site))
        misused = (PermitMisused,) if self._scene.judge.crawl_limit or redirects else ()
        with suppress(TimeoutError, *REFUSALS, *misused):
            async with asyncio.timeout(600):
                await permit.__aenter__()
                self._scene.visitor.received += 1
                self._scene.progress.granted(origin)
                request = self._scene.judge.permit_entered(permit.url, self._scene.now())
                held.append((permit, request))

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
        permit = self._machine.gate.permit(url)
        try:
            async with asyncio.timeout(1_000):
                await permit.__aenter__()
        except (PermitMisused, *REFUSALS):
            return
        except TimeoutError:
            if judge.pacing.concurrency == 1:
                self._trace.fail("a task that would deadlock gets an error", url)
            return
        await permit.__aexit__(None, None, None)
        self._scene.visitor.received += 1

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

    def _set_wall(self, by: float) -> None:
        self._machine.clock.step_wall(by)
        self._scene.progress.wall_was_set(by)
        self._scene.judge.robots.wall_was_set = True
        for ledger in self._scene.ledgers:
            ledger.wall_was_set = True
