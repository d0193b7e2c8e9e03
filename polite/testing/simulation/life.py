"""One life of the simulated process: a gate and its frontiers are opened, used as the plan says, and closed, or killed."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from polite import schedulers
from polite.compose import open_frontier, open_gate
from polite.errors import Overloaded, PermitMisused, StoreFailed
from polite.events import Dropped, Event, Granted, OriginPostponed, Reclaimed, Refused, Skipped
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.pacing.policy import Anchor
from polite.ports import RobotsStore, Scheduler
from polite.robots.errors import Disallowed, RobotsUnreachable
from polite.testing.simulation.judge import Judge, Request
from polite.testing.simulation.ledger import Due, Ledger
from polite.testing.simulation.loop import SimulatedClock, SimulationLoop
from polite.testing.simulation.plan import FOLDERS, FrontierPlan, Plan, Step
from polite.testing.simulation.progress import Progress, Waiter
from polite.testing.simulation.saboteurs import FaultyListener, FaultyThrottle
from polite.testing.simulation.sites import PageFailed, Sites
from polite.testing.simulation.trace import Trace
from polite.testing.simulation.visits import GaveUp, Visitor, folder_of, origin_of

# A world that goes on for so long (seconds) after its last step does not end.
_LONGEST_S = 400 * 86_400.0
_REFUSALS = (Disallowed, Overloaded, StoreFailed)
_OWN_FAULTS = (GaveUp, PageFailed, *_REFUSALS)
_AGENT = "SimulatedBot/1.0 (+https://example.com/bot)"


@dataclass(slots=True)
class Parts:
    """What a life is made of, all of it shared with the lives before and after."""

    plan: Plan
    trace: Trace
    judge: Judge
    progress: Progress
    sites: Sites
    visitor: Visitor
    ledgers: list[Ledger]
    folder: Path
    memory: RobotsStore | None
    scheduler: Callable[[], Scheduler] | None
    throttle: Callable[[], Any] | None
    listener: Callable[[Event], None] | None


class Life:
    """`await live(steps)` in the life's own loop. Raises what polite raises without a cause; a violation stops the loop."""

    def __init__(self, parts: Parts, loop: SimulationLoop, clock: SimulatedClock, number: int) -> None:
        self._parts = parts
        self._plan = parts.plan
        self._trace = parts.trace
        self._loop = loop
        self._clock = clock
        self._number = number
        self._waiters: dict[object, Waiter] = {}
        self._idle: dict[int, list[float]] = {}
        self._paused: set[int] = set()
        self._ending: set[int] = set()
        self._frontiers: list[Frontier] = []
        self._workers: list[list[asyncio.Task[None]]] = []
        self._gate: Gate

    async def live(self, steps: tuple[Step, ...]) -> None:
        """From opening the gate to closing it."""
        watch = self._loop.create_task(self._watch())
        try:
            async with AsyncExitStack() as stack:
                self._gate = gate = await stack.enter_async_context(self._opened())
                gate.pacing = self._parts.judge.pacing
                for number, plan in enumerate(self._plan.frontiers):
                    await self._open(stack, gate, number, plan)
                await self._take(steps)
                self._trace.note("ending")
                for number in range(len(self._frontiers)):
                    await self._end(number)
                self._expect_counters(gate)
        finally:
            watch.cancel()

    # Opening.

    def _opened(self) -> AbstractAsyncContextManager[Gate]:
        plan, parts = self._plan, self._parts
        throttle = None if parts.throttle is None else parts.throttle()
        if throttle is None and plan.saboteurs & {"throttle", "throttle-nonsense"}:
            nonsense = "throttle-nonsense" in plan.saboteurs
            throttle = FaultyThrottle(lambda: parts.judge.pacing, Random(plan.seed), nonsense=nonsense)
        return open_gate(
            _AGENT,
            robots=plan.robots,
            pacing=plan.pacing,
            store={"memory": parts.memory, "file": self._file("robots")}.get(plan.store),
            throttle=throttle,
            listener=self._listener(),
            clock=self._clock,
            transports=dict.fromkeys(("http", "https", "ftp"), parts.sites),
        )

    def _file(self, name: str) -> Path:
        return self._parts.folder / f"{name}-{self._number}.sqlite"

    def _listener(self) -> Callable[[Event], None]:
        saboteurs = self._plan.saboteurs
        if saboteurs & {"listener", "listener-cancelled"}:
            chance = Random(self._plan.seed + 1)
            return FaultyListener(self._heard, chance, cancels="listener-cancelled" in saboteurs)
        return self._heard

    async def _open(self, stack: AsyncExitStack, gate: Gate, number: int, plan: FrontierPlan) -> None:
        made = self._parts.scheduler or getattr(schedulers, plan.scheduler)
        frontier = await stack.enter_async_context(
            open_frontier(
                gate,
                store=self._file(f"queue{number}") if plan.kept else None,
                scheduler=made(),
                max_waiting=plan.max_waiting,
                max_tries=plan.max_tries,
                max_robots_tries=plan.max_robots_tries,
                max_robots_fetches=plan.max_robots_fetches,
                max_active_origins=plan.max_active_origins,
            )
        )
        self._frontiers.append(frontier)
        self._idle[number] = []
        self._workers.append([])
        for _ in range(plan.workers):
            self._hire(number)
        stack.callback(lambda: [worker.cancel() for worker in self._workers[number]])

    # Events.

    def _heard(self, event: Event) -> None:
        if self._parts.sites.ended:
            return
        self._tell(event)
        match event:
            case Refused(url=url):
                self._refused(url, event.reason)
            case Dropped(url=url):
                self._trace.note("dropped", url, event.because)
                self._ended(url, "dropped")
                self._parts.progress.told(origin_of(url))
            case Granted(url=url):
                self._parts.visitor.turns[url] = self._loop.time()
                self._parts.visitor.told += 1
                self._parts.judge.turned(origin_of(url), url)
                self._trace.note("turn", url, f"after {event.waited_s:.3f} s")
            case Skipped(url=url):
                self._parts.judge.unused(url)
                self._trace.note("skipped", url, event.because)
            case Reclaimed(url=url):
                self._trace.note("reclaimed", url)
                self._parts.judge.reclaimed(url)
            case OriginPostponed():
                self._trace.note("put off", event.origin, f"{event.for_s:.3f} s", event.because)
                self._parts.progress.told(event.origin)
            case _:
                self._trace.note(type(event).__name__.lower(), event)

    def _tell(self, event: Event) -> None:
        if self._parts.listener is None:
            return
        try:
            self._parts.listener(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the fault of what is tested
            self._trace.fail("the listener under test does not fail", f"{error!r} at {event}")

    def _refused(self, url: str, reason: str) -> None:
        self._trace.note("refused", url, reason)
        self._ended(url, "refused")
        self._parts.progress.told(origin_of(url))
        self._require_reason(url, reason)

    def _ended(self, url: str, how: str) -> None:
        if (ledger := self._ledger(url)) is not None:
            ledger.ended(url, how)

    def _require_reason(self, url: str, reason: str) -> None:
        """What every answer allowed is not refused by a rule."""
        judge = self._parts.judge
        origin, folder = origin_of(url), folder_of(url)
        if reason == "RULE" and judge.knows(origin) and not judge.ever_refused(origin, folder):
            self._trace.fail("what robots.txt allows is not refused", f"{url}: {reason}")

    def _ledger(self, url: str) -> Ledger | None:
        """Return the ledger of the frontier whose number is in the URL's query."""
        number = url.rpartition("?f=")[2]
        return self._parts.ledgers[int(number)] if number.isdigit() else None

    # Steps.

    async def _take(self, steps: tuple[Step, ...]) -> None:
        tasks: list[asyncio.Task[None]] = []
        for step in steps:
            wait = step.at - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            self._trace.note("step", step.kind, step.number)
            tasks.append(self._loop.create_task(self._do(step)))
        if tasks:
            await asyncio.gather(*tasks)

    async def _do(self, step: Step) -> None:
        works: dict[str, Callable[[Step], Coroutine[Any, Any, None]]] = {
            "put": self._put,
            "permit": self._permit,
            "check": self._check,
            "explain": self._explain,
            "pump": self._pump,
            "repace": self._repace,
            "wall": self._set_wall,
            "pause": self._pause,
            "cancel": self._fire,
            "worker": self._add,
        }
        work = works[step.kind](step)
        patience = dict(step.options).get("patience")
        if patience is None:
            await work
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await work

    def _url(self, step: Step, at: int, name: str) -> str:
        chance = Random(f"{self._plan.seed} {step.number} {at}")
        page = step.number * 100 + at if chance.random() < 0.95 else 0
        return f"{self._plan.sites[step.sites[at]].origin}/{chance.choice(FOLDERS)}/{page}{name}"

    async def _put(self, step: Step) -> None:
        number = step.frontier
        if number in self._ending:
            return
        frontier, ledger = self._frontiers[number], self._parts.ledgers[number]
        later = step.option("later") or None
        again = bool(step.option("again"))
        not_before = None if later is None else self._clock.wall() + later
        chance = Random(f"{self._plan.seed} {step.number}")
        urls = list(dict.fromkeys(self._url(step, at, f"?f={number}") for at in range(len(step.sites))))
        dues = {url: ledger.putting(url, later=later, again=again) for url in urls}
        options: dict[str, Any] = {
            "not_before": not_before,
            "again": again,
            "depth": chance.randrange(5),
            "payload": step.number,
        }
        if step.option("many"):
            answers = await frontier.put_many(urls, priority=chance.random(), **options)
            for url, answer in zip(urls, answers, strict=True):
                self._was_put(ledger, url, answer.value, dues[url])
            return
        for url in urls:
            answer = await frontier.put(url, priority=chance.random(), **options)
            self._was_put(ledger, url, answer.value, dues[url])

    def _was_put(self, ledger: Ledger, url: str, answer: str, due: Due) -> None:
        self._trace.note("put", url, answer)
        ledger.put(url, answer, due)

    async def _permit(self, step: Step) -> None:
        url = self._url(step, 0, "")
        await self._waiting(url, self._parts.visitor.use(self._gate.permit(url), None, span=self._plan.span))

    async def _waiting(self, url: str, work: Coroutine[Any, Any, None]) -> None:
        """Do it, as a waiter at the URL's origin; refusals are answers."""
        key = object()
        self._waiters[key] = Waiter(origin_of(url), self._loop.time(), f"a permit for {url}")
        try:
            await work
        except RobotsUnreachable:
            self._parts.progress.told(origin_of(url))
        except Disallowed as error:
            self._require_reason(url, error.decision.reason.name)
            self._parts.progress.told(origin_of(url))
        except Overloaded:
            self._require_tight(url)
        except StoreFailed:
            self._require_fault("store")
        except _OWN_FAULTS:
            pass
        finally:
            del self._waiters[key]

    def _require_tight(self, url: str) -> None:
        if self._plan.robots.max_origins >= len(self._plan.sites):
            self._trace.fail("Overloaded needs a bound that is reached", url)

    def _require_fault(self, saboteur: str) -> None:
        if saboteur not in self._plan.saboteurs:
            self._trace.fail("no error without a cause", saboteur)

    async def _check(self, step: Step) -> None:
        url = self._url(step, 0, "")

        async def check() -> None:
            decision = await self._gate.check(url)
            if not decision.allowed:
                self._require_reason(url, decision.reason.name)

        await self._waiting(url, check())

    async def _explain(self, step: Step) -> None:
        url = self._url(step, 0, "")

        async def explain() -> None:
            await self._gate.explain(url)

        await self._waiting(url, explain())

    async def _pump(self, step: Step) -> None:
        """Permits of several origins at once, left in another order than they came; one that is held is asked for again."""
        chance = Random(f"{self._plan.seed} {step.number}")
        urls = {origin_of(url): url for url in (self._url(step, at, "") for at in range(len(step.sites)))}
        held: list[tuple[Permit, Request]] = []
        try:
            for origin in sorted(urls):
                permit = self._gate.permit(urls[origin])
                # In a scope that all share, each waits for the one before; and by a redirect for an origin that is held.
                held_up = self._parts.judge.shared or self._led_through(origin, held)
                own = (PermitMisused,) if held_up else ()
                with suppress(TimeoutError, *_REFUSALS, *own):
                    async with asyncio.timeout(600):
                        await permit.__aenter__()
                        self._parts.visitor.granted += 1
                        self._parts.progress.granted(origin)
                        held.append(
                            (
                                permit,
                                self._parts.judge.granted(
                                    origin, folder_of(permit.url), permit.url, self._loop.time()
                                ),
                            )
                        )
            chance.shuffle(held)
            while held:
                permit, request = held.pop()
                self._leave(request)
                await permit.__aexit__(None, None, None)
                if held and chance.random() < 0.5:
                    await self._ask_again(held[-1][0].url)
        finally:
            for permit, request in held:
                self._leave(request)
                await permit.__aexit__(None, None, None)

    def _led_through(self, origin: str, held: Sequence[tuple[Permit, Request]]) -> bool:
        """Whether the origin's robots.txt may be fetched through one whose permit is held."""
        origins = {request.origin for _, request in held}
        sites = (site for site in self._plan.sites if site.origin == origin)
        return any(each.origin in origins for site in sites for each in self._plan.ways(site))

    def _leave(self, request: Request) -> None:
        if not self._parts.sites.ended:
            self._parts.judge.left(request)
            self._parts.progress.answered(request.origin, failed=False)
            self._parts.progress.left(request.origin)

    async def _ask_again(self, url: str) -> None:
        """This task holds the origin's only turn: to wait for another would be to wait for itself."""
        if self._parts.judge.pacing.concurrency > 1 or self._parts.judge.shared:
            return
        permit = self._gate.permit(url)
        try:
            async with asyncio.timeout(1_000):
                await permit.__aenter__()
        except (PermitMisused, *_REFUSALS):
            return
        except TimeoutError:
            if self._parts.judge.pacing.concurrency == 1:
                self._trace.fail("a task that would wait for itself is told so", url)
            return
        await permit.__aexit__(None, None, None)
        self._parts.visitor.granted += 1

    async def _repace(self, step: Step) -> None:
        """Another policy, perhaps back and forth between two anchors: a turn is reported under one, and left under the other."""
        anchors = [Anchor.END, Anchor.FIRST_BYTE]
        for number in range(int(step.option("times", 1.0))):
            pacing = replace(
                self._gate.pacing,
                min_delay=step.option("min_delay"),
                concurrency=int(step.option("concurrency")),
                anchor=anchors[(int(step.option("end")) + number) % 2],
                max_crawl_delay=300.0 if step.option("crawl") else self._gate.pacing.max_crawl_delay,
            )
            self._parts.judge.repaced(pacing)
            self._parts.progress.pacing = pacing
            self._gate.pacing = pacing
            await asyncio.sleep(step.option("every"))

    async def _set_wall(self, step: Step) -> None:
        self._clock.step_wall(step.option("by"))
        self._parts.progress.wall_was_set(step.option("by"))
        self._parts.judge.wall_was_set = True
        for ledger in self._parts.ledgers:
            ledger.wall_was_set = True

    async def _pause(self, step: Step) -> None:
        number = step.frontier
        self._paused.add(number)
        self._frontiers[number].pause()
        await asyncio.sleep(step.option("for"))
        self._frontiers[number].resume()
        self._paused.discard(number)
        self._idle[number] = [self._loop.time() for _ in self._idle[number]]

    async def _fire(self, step: Step) -> None:
        workers = [each for each in self._workers[step.frontier] if not each.done()]
        if workers:
            self._hire(step.frontier)
            worker = workers[step.number % len(workers)]
            worker.cancel()
            # A task that was cancelled keeps what it held, an unused permit too, for as long as anything keeps the task.
            self._workers[step.frontier].remove(worker)

    async def _add(self, step: Step) -> None:
        self._hire(step.frontier)

    # Workers.

    def _hire(self, number: int) -> None:
        self._workers[number].append(self._loop.create_task(self._work(number)))

    async def _work(self, number: int) -> None:
        frontier, ledger = self._frontiers[number], self._parts.ledgers[number]
        while True:
            since = self._loop.time()
            self._idle[number].append(since)
            try:
                permit = await anext(frontier)
            except StopAsyncIteration:
                return
            finally:
                if self._idle[number]:
                    self._idle[number].pop()
            with suppress(*_OWN_FAULTS):
                await self._parts.visitor.use(permit, ledger, span=self._plan.span)
            del permit

    async def _end(self, number: int) -> None:
        """As the plan says; afterwards nothing is left."""
        self._ending.add(number)
        frontier, ledger = self._frontiers[number], self._parts.ledgers[number]
        ending = self._plan.frontiers[number].ending
        if ending == "join":
            await frontier.join()
            ledger.expect_all_ended()
            frontier.close()
        elif ending == "close":
            frontier.close()
        else:
            left = await frontier.drain()
            self._expect_drained(ledger, {task.url for task in left}, kept=self._plan.frontiers[number].kept)
        for ended in await asyncio.gather(*self._workers[number], return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        if ending == "close":
            ledger.expect_all_ended()
        with suppress(FrontierClosed):
            await frontier.put(f"{self._plan.sites[0].origin}/a/late?f={number}")
            self._trace.fail("a closed frontier takes nothing", ledger.name)

    def _expect_drained(self, ledger: Ledger, left: set[str], *, kept: bool) -> None:
        if kept:
            return
        for entry in ledger.entries.values():
            if entry.certain and entry.ended is None and entry.url not in left:
                self._trace.fail(
                    "nothing acknowledged is lost", f"{ledger.name}: drain does not give back {entry.url}"
                )

    # What must hold.

    async def _watch(self) -> None:
        """Look for waiters that are lost; seldom while nothing happens."""
        interval, events, begun = 30.0, -1, self._loop.time()
        while True:
            await asyncio.sleep(interval)
            self._parts.progress.check(self._waiting_now())
            interval = 30.0 if self._parts.progress.events != events else min(interval * 2, 20_000.0)
            events = self._parts.progress.events
            if self._loop.time() - begun > _LONGEST_S:
                self._trace.fail("a crawl ends", f"it did not within {_LONGEST_S:g} s")

    def _waiting_now(self) -> Iterator[Waiter]:
        yield from self._waiters.values()
        for number, idle in self._idle.items():
            if not idle or number in self._paused:
                continue
            if number in self._ending and self._plan.frontiers[number].ending == "drain":
                continue
            since = max(idle)
            for entry in self._parts.ledgers[number].waiting():
                yield Waiter(
                    origin_of(entry.url),
                    max(since, entry.put_at, entry.due_at),
                    f"{self._parts.ledgers[number].name}'s {entry.url}",
                )

    def _expect_counters(self, gate: Gate) -> None:
        """What a worker that was cancelled did not take any more is granted all the same."""
        granted, told, received = gate.counters.granted, self._parts.visitor.told, self._parts.visitor.granted
        if granted != told or granted < received:
            self._trace.fail(
                "counters add up", f"{granted} granted by the gate, {told} events, {received} received"
            )
