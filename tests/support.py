"""Helpers that tests of several packages share: a gate of scripted servers, the loop's time, one worker's crawl."""

import asyncio
import io
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import settings

import polite
from polite.robots.dialect import RFC9309
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport

OpenedGate = AbstractAsyncContextManager[polite.Gate]

# tests/conftest.py knows whether slow tests are left out, and slow rows of a test with them.
FAST_ONLY = False
A, B = "https://a.test", "https://b.test"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")
# Processor time of the yardstick on a usual machine (seconds).
_YARDSTICK_S = 0.04
# RFC 9309 without any leniency of ours.
_NOT_LENIENT = dict.fromkeys(("excluded_equal_escapes", "colon_optional", "reads_utf16"), False)
STRICT = replace(RFC9309, name="strict", misspellings=(), **_NOT_LENIENT)

# Paths that clients rewrite: a request must be sent letter by letter as it was decided.
REWRITTEN = (
    *"/a? /? /a?next=http%3A%2F%2Fx%2F /%3a /%ZZ /] /% /a?x? /a?? /a?%ZZ&]=% //a /a//%2F.. /a/%2e. /a/..;/b".split(),
    *("/\u00e9?\u00e9", "/a|b^{c}'\"`?'\"`\\", "/a:b@c?d+e%20f"),
)


class Abort(BaseException):
    """An error that is no Exception, as pytest.fail and trio raise it."""


def examples(number: int, *, fast: int) -> settings:
    """So many examples of hypothesis; `fast` of them among the fast tests."""
    return settings(max_examples=fast if FAST_ONLY else number)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TimedTransport(ScriptedTransport):
    """A scripted transport that records the times of requests, and responds after `delay_s`."""

    def __init__(self, script: Mapping[str, Any], *, delay_s: float = 0.0) -> None:
        super().__init__(script)
        self.times: list[float] = []
        self._delay_s = delay_s

    async def get(self, ask: Any) -> Any:
        self.times.append(now())
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        return await super().get(ask)


def scripted_gate(script=None, *, agent="TestBot/1.0", **options):
    """Open a gate on the loop's clock, whose http and https servers follow `script`.

    Args:
        script: The responses for each URL, or a transport. By default every robots.txt is a 404.
        agent: The crawler's user agent.
        options: Other options of `polite.open_gate`; they replace the clock and the transports too.
    """
    transport = ScriptedTransport(script) if script is None or isinstance(script, Mapping) else script
    defaults = {"clock": LoopClock(), "transports": {"http": transport, "https": transport}}
    return polite.open_gate(agent, **{**defaults, **options})


def now() -> float:
    return asyncio.get_running_loop().time()


async def fetch_all(frontier, fetched=None, *, takes_s=0.0):
    """Fetch with one worker until the iteration ends; return the URLs, and append (time, URL) to `fetched`.

    Each page takes `takes_s`.
    """
    fetched = [] if fetched is None else fetched
    async for permit in frontier:
        async with permit:
            fetched.append((now(), permit.url))
            if takes_s:
                await asyncio.sleep(takes_s)
            permit.report(status=200)
    return [url for _, url in fetched]


async def fetch_rest(frontier: polite.Frontier, *args: Any, **options: Any) -> list[str]:
    """Close the frontier, and fetch what it has as `fetch_all` does."""
    frontier.close()
    return await fetch_all(frontier, *args, **options)


async def end_next(frontier: polite.Frontier) -> None:
    """Enter the next permit, and leave it at once without a report."""
    async with await anext(frontier):
        pass


def run_python(program: str, **options: Any) -> Any:
    """Run a program in a process of its own, from the folder of the project; `options` are those of subprocess.run."""
    command, root = [sys.executable, "-c", program], Path(__file__).resolve().parents[1]
    options = {"capture_output": True, "text": True, "check": False, "timeout": 300.0, "cwd": root, **options}
    return subprocess.run(command, **options)  # noqa: PLW1510


async def expect_no_other_tasks() -> None:
    """Require that no asyncio task but the test's own is left."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def calls_of(work: Callable[[], object]) -> int:
    """Return how many calls, of Python and of C, the work makes."""
    counted = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def slowness() -> float:
    """How many times slower than a usual machine this one is now, at least 1, by the processor time of a yardstick."""

    def yardstick() -> float:
        started, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number
        return time.process_time() - started

    return max(1.0, *(yardstick() / _YARDSTICK_S for _ in range(5)))
