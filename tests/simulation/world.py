"""A world: the lives of the crawler's process, one after the other, their steps, and what must be true after each."""

import asyncio
import gc
import logging
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from polite.errors import Overloaded, PermitMisused, StoreFailed
from polite.gate.permit import Permit
from polite.pacing.policy import Anchor
from polite.robots.decision import Disallowed, RobotsUnreachable
from tests.simulation.faults import FullDisk
from tests.simulation.judge import Request
from tests.simulation.ledger import drawn_draft
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.machine import EXPECTED, REFUSALS, Machine, Scene
from tests.simulation.plan import FOLDERS, Plan, Step, origin_of
from tests.simulation.trace import Report, Violation


class StepRunner:
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
        """Request a turn that the task holds. Without concurrency, waiting for it would deadlock, unless it was taken back."""
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
            if judge.pacing.concurrency == 1 and judge._in_flight(url):
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


# A walk over all objects takes longer than most worlds, so few worlds do it.
_COUNTED_SEEDS = 50
# A life must end within this time after its first step (seconds).
_MAX_S = 400 * 86_400.0
# Faults whose errors polite must log.
_LOGGED = frozenset({"listener", "listener-cancelled", "throttle", "throttle-nonsense", "store"})


def left_in(loop: SimulationLoop) -> Violation | None:
    """Run the loop's last callbacks, and return what is still left in it."""
    # Tasks that were cancelled last end in the next steps.
    for _ in range(5):
        loop.call_soon(loop.stop)
        loop.run_forever()
    # A thread cannot be cancelled: it ends its job after its waiter was cancelled.
    while loop.shared_jobs:
        loop.call_later(1.0, loop.stop)
        loop.run_forever()
    if tasks := asyncio.all_tasks(loop):
        return Violation("no task is left", ", ".join(sorted(repr(each) for each in tasks))[:2_000])
    if timers := [each for each in loop.timers if not each.cancelled()]:
        return Violation("no timer is left", repr(timers)[:2_000])
    if loop.jobs:
        return Violation("no thread is left", f"{loop.jobs} jobs")
    return None


@contextmanager
def captured_log(messages: list[str]) -> Iterator[None]:
    """Append errors in polite's log to `messages`, instead of showing them."""

    class Capture(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                error = f": {record.exc_info[1]!r}" if record.exc_info else ""
                messages.append(record.getMessage() + error)

    logger = logging.getLogger("polite")
    handler, propagate = Capture(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _resources(seed: int) -> tuple[int, int]:
    """Return how many descriptors are open, and permits alive: these for some seeds only, 0 for the others."""
    # Systems without this folder do not tell.
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208 - thousands of times
    if seed % _COUNTED_SEEDS:
        return descriptors, 0
    gc.collect()
    return descriptors, sum(isinstance(each, Permit) for each in gc.get_objects())


async def _live(scene: Scene, machine: Machine, steps: tuple[Step, ...]) -> None:
    """Open the machine, take the steps, and close the machine. Raise the errors of polite that nothing explains."""
    loop = machine.loop
    watch = loop.create_task(_watch(scene, machine))
    loop.on_wait = machine.expect_liveness
    loop.on_spin = lambda: scene.trace.record("time goes on", "there is always something to do at once")
    try:
        async with AsyncExitStack() as stack:
            await machine.open(stack)
            await StepRunner(scene, machine).run(steps)
            scene.trace.note("ending")
            await machine.close_frontiers()
            machine.expect_counters()
    finally:
        loop.on_wait = lambda: None
        watch.cancel()


async def _watch(scene: Scene, machine: Machine) -> None:
    progress = scene.progress
    interval, events, begun = 30.0, -1, scene.now()
    while True:
        await asyncio.sleep(interval)
        progress.check(machine.waiters())
        interval = 30.0 if progress.events != events else min(interval * 2, 20_000.0)
        events = progress.events
        if scene.now() - begun > _MAX_S:
            scene.trace.fail("a crawl ends", f"it did not end within {_MAX_S:g} s")


class World:
    def __init__(self, plan: Plan, tell: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        shared = Path("/dev/shm")
        folder = tempfile.mkdtemp(prefix="polite-simulation-", dir=shared if shared.is_dir() else None)
        self.scene: Scene = Scene(plan, Path(folder), tell)
        self.logged: list[str] = []
        self._chance = Random(f"{plan.seed} lives")
        full_at = self._chance.uniform(0, plan.span)
        self._disk = FullDisk(full_at, full_at + plan.span / 10, self.scene.now, self._disk_is_full)
        self._full_since: float | None = None

    def run(self) -> Report:
        try:
            with (
                captured_log(self.logged),
                self._disk.in_use() if "store" in self.plan.faults else nullcontext(),
            ):
                return self._run()
        finally:
            shutil.rmtree(self.scene.folder, ignore_errors=True)

    def _run(self) -> Report:
        seed, scene = self.plan.seed, self.scene
        random.seed(seed)
        descriptors, permits = _resources(seed)
        kills = list(self.plan.kills)
        lives = 0
        another = True
        while another:
            lives += 1
            another = self._run_life(lives, kills.pop(0) if kills else None)
            scene.trace.raise_violation(self.plan)
        open_now, alive_now = _resources(seed)
        if open_now > descriptors:
            scene.trace.record("no descriptor is left", f"{descriptors} were open before, {open_now} after")
        if alive_now > permits:
            scene.trace.record("no finished permit is left", f"{alive_now - permits} are alive")
        scene.trace.raise_violation(self.plan)
        return Report(seed, scene.judge.pages, scene.judge.robots.count, scene.now(), lives)

    # Lives.

    def _run_life(self, number: int, killed_at: float | None) -> bool:
        scene = self.scene
        now = scene.now()
        loop, clock = self._new_loop(number)
        # Of several lives, none repeats a step: it might put tasks that are not unique.
        steps = tuple(step for step in self.plan.steps if step.at > now or number == 1)
        task = loop.create_task(_live(scene, Machine(scene, loop, clock, number), steps))
        task.add_done_callback(lambda _: loop.stop())
        kill = None if killed_at is None else loop.call_at(max(killed_at, now), loop.stop)
        try:
            asyncio.set_event_loop(loop)
            loop.run_forever()
            if scene.trace.violation is not None:
                return False
            if not task.done():
                # The files stay as they are. From now on the process's tasks have no effect that counts.
                scene.trace.note("KILLED")
                # A task that ended while the disk was full was not written either.
                return self._prepare_next_life(number, loop.time())
            if kill is not None:
                kill.cancel()
            return self._ended(loop, task, number)
        finally:
            scene.sites.ended = True
            loop.discard()
            scene.loop = scene.clock = None

    def _new_loop(self, life: int) -> tuple[SimulationLoop, SimulatedClock]:
        scene, now = self.scene, self.scene.now()
        chance = Random(f"{self.plan.seed} threads {life}")
        loop = SimulationLoop(start=now, chance=chance, delays=self.plan.thread_s)
        loop.set_exception_handler(
            lambda _, context: self.logged.append(f"{context['message']}: {context.get('exception')!r}")
        )
        zero = self._chance.uniform(-now, 1e6)
        scene.loop, scene.clock = loop, SimulatedClock(loop, zero=zero, wall=scene.wall_zero)
        scene.sites.ended = False
        scene.visitor.received = scene.visitor.granted = 0
        return loop, scene.clock

    def _disk_is_full(self) -> None:
        if self._full_since is None:
            self._full_since = self.scene.now()
        self.scene.progress.suspend(self.plan.span / 10 + 5_000)

    def _ended(self, loop: SimulationLoop, task: "asyncio.Task[None]", number: int) -> bool:
        error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
        if isinstance(error, StoreFailed) and self._full_since is not None:
            self.scene.trace.note("ENDED", str(error))
            return self._prepare_next_life(number, self._full_since)
        if error is not None:
            self.scene.trace.note("error", "".join(traceback.format_exception(error))[-3_000:])
            self.scene.trace.record("no error without a cause", repr(error))
            return False
        if left := left_in(loop):
            self.scene.trace.record(left.invariant, left.seen)
        elif self.logged and not self.plan.faults & _LOGGED:
            logged = "; ".join(self.logged)[:2_000]
            self.scene.trace.record("each failure is reported to its caller", logged)
        self.scene.paused_at = loop.time()
        return False

    def _prepare_next_life(self, number: int, ended_at: float) -> bool:
        """Copy the files for the next life. What was written after `ended_at`, or while the disk was full, may be missing."""
        scene = self.scene
        for file in scene.folder.glob(f"*-{number}.sqlite*"):
            name, _, suffix = file.name.partition(f"-{number}.sqlite")
            shutil.copyfile(file, scene.folder / f"{name}-{number + 1}.sqlite{suffix}")
        since = (ended_at if self._full_since is None else self._full_since) - self.plan.slack_s
        self._full_since = None
        scene.sites.ended = True
        scene.judge.restarted(kept=self.plan.store != "none", delayed=self._delayed_origins())
        for ledger in scene.ledgers:
            ledger.killed(since, set(scene.visitor.turns))
        down = self._chance.choice([0.0, 1.0, 100.0])
        scene.paused_at = scene.now() + down
        if scene.clock is not None:
            scene.wall_zero = scene.clock.step_wall(0.0)
        scene.progress.restarted(down)
        return True

    def _delayed_origins(self) -> set[str]:
        """Return the origins whose delay the next life keeps: those in the files of all frontiers, if only these use them."""
        if any(step.kind in {"permit", "check", "explain", "hold"} for step in self.plan.steps):
            return set()
        if not all(each.kept for each in self.plan.frontiers):
            return set()
        told = [{origin_of(e.url) for e in each.entries.values() if e.certain} for each in self.scene.ledgers]
        return set.intersection(*told) if told else set()
