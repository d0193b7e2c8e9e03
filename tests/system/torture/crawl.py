"""One crawl of a path, of which an await may fail; and what must hold however it went."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import polite
from docs.examples.demo.crawler import AGENT, MIN_DELAY_S
from polite.judge.sites import BUSY_S, RETRY_AFTER_S
from polite.judge.verdict import Expected, judge
from polite.origin import Target
from polite.robots.exchange import Reply
from polite.testing import LoopClock
from tests.system.torture import web

# Virtual seconds within which everybody must have an answer: back-offs and time-outs of all paths are far shorter.
LIMIT_S = 100_000.0
STEPS_TO_END = 50
PERMITTED = "permitted"

Opening = Callable[[], AbstractAsyncContextManager[polite.Gate]]
Scene = Callable[["Crawl"], Awaitable[None]]


class Crawl:
    """A gate over the demo's web, opened, used and closed by tasks that the saboteur drives."""

    def __init__(self, path, store, saboteur):
        self.path, self.saboteur = path, saboteur
        loop = asyncio.get_running_loop()
        self.web, self.other = web.DemoTransport(loop.time), web.DemoTransport(loop.time)
        self.names = web.Names(path.address_ttl_s)
        self.granted: list[str] = []
        self.complaints: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: self.complaints.append(context))
        loop.set_task_factory(saboteur)  # type: ignore[arg-type]
        self.opening: Opening = lambda: polite.open_gate(
            AGENT,
            transports={"http": self.web, "https": self.other, "ftp": self.other},
            store=store(),
            clock=LoopClock(),
            robots=polite.RobotsPolicy(retry_min=BUSY_S, infer_missing=True),
            pacing=polite.PacingPolicy(min_delay=MIN_DELAY_S, backoff=BUSY_S, scopes=path.scopes),
            addresses=self.names,
            fetching=polite.FetchPolicy(timeout=10, connections=1),
            recrawl=polite.RecrawlPolicy(),
        )

    @property
    def urls(self) -> tuple[str, ...]:
        return self.path.allowed + self.path.denied

    async def play(self, scene: Scene) -> None:
        """Open, play, look whether all is well, close, look whether anything is left."""
        context = self.opening()
        (self.gate,) = await self.ended(context.__aenter__())
        if isinstance(self.gate, BaseException):
            self.expect_sabotage(self.gate)
            await self._expect_nothing_left()
            context = self.opening()
            self.gate = await context.__aenter__()
        await scene(self)
        await self.expect_health()
        await self.spoilt_at_most(context.__aexit__(None, None, None))
        assert self.web.closed, "the first transport was not closed"
        assert self.other.closed, "the second transport was not closed"
        assert self.names.closed or self.path.scopes.address is None, "who knows the addresses was not closed"
        await self._expect_nothing_left()
        self._expect_politeness()
        assert not self.complaints, self.complaints

    async def ended(self, *work: Awaitable[Any]) -> list[Any]:
        """What each came to; nobody may be left waiting."""
        tasks = [asyncio.ensure_future(each) for each in work]
        _, stuck = await asyncio.wait(tasks, timeout=LIMIT_S)
        assert not stuck, f"stuck: {stuck}"
        return await asyncio.gather(*tasks, return_exceptions=True)

    async def spoilt_at_most(self, *work: Awaitable[Any]) -> int:
        """Do it, which only sabotage may spoil. Returns how many were."""
        errors = [each for each in await self.ended(*work) if isinstance(each, BaseException)]
        for error in errors:
            self.expect_sabotage(error)
        return len(errors)

    async def visit(self, url: str) -> str:
        async with self.gate.permit(url) as permit:
            self.granted.append(url)
            await self.inside(permit)
        return PERMITTED

    async def inside(self, permit: polite.Permit, fields: Mapping[str, str] = MappingProxyType({})) -> int:
        """What a crawler does in the block: fetch and report, as if these fields were sent too. Returns the status."""
        await asyncio.sleep(0)
        answer = self.web.answer(Target.of(permit.url))
        assert isinstance(answer, Reply)
        retry_after = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
        permit.report(status=answer.status, headers=retry_after | {**fields})
        await asyncio.sleep(0)
        return answer.status

    async def judge(self, tasks: dict[asyncio.Task[str], str]) -> None:
        """Each comes to what it may: nobody else is cancelled or ended by what was done to one."""
        await self.ended(*tasks)
        for task, url in tasks.items():
            if task.cancelled():
                assert task is self.saboteur.victim or task.cancelling(), f"{url}: cancelled by nobody"
            elif (error := task.exception()) is not None:
                if not isinstance(error, polite.PoliteError):
                    self.expect_sabotage(error)
            else:
                assert task.result() == PERMITTED

    async def expect_health(self) -> None:
        """The same gate goes on: what is allowed gets its turn, what is not is refused, and no turn is missing."""
        with self.saboteur.resting():
            if not self.gate.services.shutdown.begun:
                async with asyncio.timeout(LIMIT_S):
                    for url in self.path.allowed:
                        await self.expect_allowed(url)
                    for url in self.path.denied:
                        with pytest.raises(polite.Disallowed):
                            await self.visit(url)
                    for url in self.urls:
                        outlook = (await self.gate.explain(url)).outlook
                        assert (outlook.open, outlook.waiting) == (0, 0), f"a turn is missing: {outlook}"
            assert not set(self.granted) & set(self.path.denied), "granted what is not allowed"
            tasks = [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}]
            # A question for addresses that nobody waits for any more ends by itself, or when it is closed.
            assert [name for name in tasks if not name.startswith("polite addresses ")] == []

    async def expect_allowed(self, url: str) -> None:
        while True:
            try:
                await self.visit(url)
            except polite.RobotsUnreachable as refusal:
                await asyncio.sleep(refusal.retry_after_s)
            else:
                return

    def expect_sabotage(self, error: BaseException) -> None:
        if self.saboteur.error is None:
            assert isinstance(error, asyncio.CancelledError), repr(error)
        else:
            assert self.saboteur.error in (error, error.__cause__, error.__context__), repr(error)

    async def _expect_nothing_left(self) -> None:
        with self.saboteur.resting():
            for _ in range(STEPS_TO_END):
                await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
            for thread in threading.enumerate():
                if thread.name.startswith("polite "):
                    thread.join(5.0)
                    assert not thread.is_alive(), f"{thread.name} is left over"

    def _expect_politeness(self) -> None:
        expected = Expected(MIN_DELAY_S, back_off_s=_back_off_s, tolerance_s=1e-6)
        for host in {request.host for request in self.web.log}:
            short = judge(expected, (each for each in self.web.log if each.host == host)).short
            assert not short, f"{host}: {short}"


def _back_off_s(status: int) -> float:
    return RETRY_AFTER_S if status == 429 else 0.0


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
