"""How near a crawl comes to what a host would give, and how often it is refused, if the host limits it and does not say how.

In virtual time, two hours for each host, with a delay of one second and one request at a time. A host is a bucket of tokens, a
fixed or a sliding window, or a limit that changes. "Possible" is what a crawl that knew the limit would get.

The laws: polite's own, which learns; a fixed delay, as most crawlers have it; and AIMD, a throttle below: half as long again after
a refusal, a little faster after twenty pages. `--hours`, `--delay` and `--status` (429) change the crawl.
"""

import argparse
import asyncio
import contextlib
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import polite
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from polite.throttles import MinDelay, Outcome, Pause, ThrottleContext

# The time from the grant to the response (seconds).
LATENCY_S = (0.01, 0.09)
REFUSALS = frozenset({429, 503})
# On sockets, so many seconds of a limit pass in one.
SCALE = 10.0


class Host(Protocol):
    """A host that may refuse a request. Times are seconds since the crawl began."""

    def ask(self, now: float) -> tuple[bool, float | None]:
        """Return whether a request is accepted, and else the Retry-After, if there is one."""

    def possible(self, until: float, delay_s: float) -> float:
        """Return the most pages that a crawl with this delay can get."""


class Bucket:
    """`rate` tokens a second, at most `burst`."""

    def __init__(self, rate: float, burst: float, retry_after_s: float | None = None) -> None:
        self.rate, self._burst, self._retry_after_s = rate, burst, retry_after_s
        self._tokens, self._at = burst, 0.0

    def ask(self, now: float) -> tuple[bool, float | None]:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1:
            return False, self._retry_after_s
        self._tokens -= 1
        return True, None

    def possible(self, until: float, delay_s: float) -> float:
        return min(until / delay_s, self._burst + self.rate * until)


class Window:
    """`most` requests in each window of some seconds: fixed or sliding. `exact`: Retry-After names the end of a fixed one."""

    def __init__(
        self,
        most: int,
        seconds: float,
        *,
        sliding: bool = False,
        retry_after_s: float | None = None,
        exact: bool = False,
    ) -> None:
        self._most, self._seconds, self._sliding = most, seconds, sliding
        self._retry_after_s, self._exact = retry_after_s, exact
        self._times: list[float] = []

    def ask(self, now: float) -> tuple[bool, float | None]:
        begun = now - self._seconds if self._sliding else now - now % self._seconds
        self._times = [at for at in self._times if at > begun]
        if len(self._times) < self._most:
            self._times.append(now)
            return True, None
        return False, begun + self._seconds - now if self._exact else self._retry_after_s

    def possible(self, until: float, delay_s: float) -> float:
        if self._sliding:
            return min(until / delay_s, self._most * (1 + until / self._seconds))
        windows = math.ceil(until / self._seconds)
        return min(until / delay_s, windows * min(self._most, self._seconds / delay_s))


class Changing:
    """A bucket, and from a time on another."""

    def __init__(self, first: Bucket, at: float, then: Bucket) -> None:
        self._first, self._at, self._then = first, at, then

    def ask(self, now: float) -> tuple[bool, float | None]:
        return (self._first if now < self._at else self._then).ask(now)

    def possible(self, until: float, delay_s: float) -> float:
        before, most = min(self._at, until), 1 / delay_s
        return before * min(most, self._first.rate) + (until - before) * min(most, self._then.rate)


HOSTS: dict[str, Callable[[], Host]] = {
    "no limit": lambda: Bucket(1e9, 1e9),
    "bucket 0.4/s, burst 1": lambda: Bucket(0.4, 1),
    "bucket 0.1/s, burst 5": lambda: Bucket(0.1, 5),
    "bucket 0.4/s, burst 10": lambda: Bucket(0.4, 10),
    "bucket 0.9/s, burst 20": lambda: Bucket(0.9, 20),
    "5 in each 10 s": lambda: Window(5, 10),
    "24 in each 60 s, Retry-After: 2": lambda: Window(24, 60, retry_after_s=2),
    "100 in each hour, with Retry-After": lambda: Window(100, 3_600, exact=True),
    "100 in each hour": lambda: Window(100, 3_600),
    "30 in any 60 s": lambda: Window(30, 60, sliding=True),
    "0.2/s after an hour of 2/s": lambda: Changing(Bucket(2, 1), 3_600, Bucket(0.2, 1)),
    "2/s after an hour of 0.2/s": lambda: Changing(Bucket(0.2, 1), 3_600, Bucket(2, 1)),
}


class Aimd:
    """Half as long again after a refusal, and 0.02 requests a second more after 20 pages."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        gap, pages = struct.unpack("<fI", context.memory) if context.memory else (self._delay_s, 0)
        refused = outcome.status in REFUSALS
        if refused:
            gap, pages = gap * 1.5, 0
        else:
            pages += 1
            if not pages % 20:
                gap = max(self._delay_s, 1 / (1 / gap + 0.02))
        wait_s = (
            max(gap, 10.0 * 2 ** min(context.strikes, 8), outcome.retry_after_s or 0.0) if refused else gap
        )
        return Pause(wait_s, "AIMD", strike=refused, memory=struct.pack("<fI", gap, pages))


async def crawl(
    host: Host,
    until: float,
    pacing: polite.PacingPolicy,
    throttle: polite.throttles.Throttle | None = None,
    *,
    status: int = 429,
    seed: int = 1,
) -> tuple[int, int]:
    """Crawl a host in virtual time. Return how many pages came, and how many requests were refused."""
    chance, loop, pages, refused = random.Random(seed), asyncio.get_running_loop(), 0, 0
    begun, transports = loop.time(), {"http": ScriptedTransport({})}
    async with polite.open_gate(
        "PaceBot/1.0", transports=transports, clock=LoopClock(), pacing=pacing, throttle=throttle
    ) as gate:
        while loop.time() - begun < until:
            async with gate.permit(f"http://host.test/{pages + refused}") as permit:
                await asyncio.sleep(chance.uniform(*LATENCY_S))
                if loop.time() - begun >= until:
                    break
                accepted, after_s = host.ask(loop.time() - begun)
                headers = {} if after_s is None else {"Retry-After": str(math.ceil(after_s))}
                permit.report(status=200 if accepted else status, headers=headers)
                pages, refused = pages + accepted, refused + (not accepted)
    return pages, refused


def reached(
    host: str,
    hours: float,
    pacing: polite.PacingPolicy,
    throttle: polite.throttles.Throttle | None = None,
    **options: int,
) -> tuple[float, float]:
    """Return the pages that a crawl got of a host, of what was possible, and the requests that were refused (both in percent)."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        until = hours * 3_600
        pages, refused = runner.run(crawl(HOSTS[host](), until, pacing, throttle, **options))
    possible = HOSTS[host]().possible(until, pacing.min_delay + sum(LATENCY_S) / 2)
    return 100 * pages / possible, 100 * refused / max(1, pages + refused)


def on_sockets(seconds: float) -> None:
    """Have crawlers fetch from one server with a host of each limit, and print what its log says."""
    from benchmarks.efficiency import read_log

    names = [name for name in HOSTS if "hour" not in name]
    crawlers = {
        "polite": ("polite", "1"),
        "Scrapy, AutoThrottle": ("scrapy", "autothrottle"),
        "crawl4ai": ("crawl4ai", "alone", os.devnull),
    }
    rows: dict[str, list[str]] = {name: [] for name in names}
    for crawler, *options in crawlers.values():
        if crawler != "polite" and find_spec(crawler) is None:
            for row in rows.values():
                row.append("not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            options_of_hosts = ["--limits", ";".join(names), "--scale", str(SCALE), "--log", str(log)]
            serving = [
                sys.executable,
                "-m",
                "benchmarks.hosts",
                "--hosts",
                str(len(names)),
                *options_of_hosts,
            ]
            with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                port = server.stdout.readline().strip()
                pages = str(int(seconds * SCALE))
                program = [
                    sys.executable,
                    "-m",
                    f"benchmarks.crawlers.with_{crawler}",
                    str(len(names)),
                    pages,
                ]
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(
                        [*program, str(1 / SCALE), port, *options], timeout=seconds + 5, check=False
                    )
                server.terminate()
            hits = [hit for hit in read_log(log) if hit[2] != "/robots.txt"]
        begun = min(hit[0] for hit in hits)
        for number, name in enumerate(names):
            statuses = [status for at, host, _, status in hits if host == number and at < begun + seconds]
            accepted = statuses.count(200)
            share = 100 * accepted / HOSTS[name]().possible(seconds * SCALE, 1.0)
            rows[name].append(f"{share:7.0f} {1_000 * (len(statuses) - accepted) / max(1, accepted):8.0f}  ")
    print("pages, of what was possible (percent); requests refused per 1,000 pages")
    print(f"{'':36}" + "".join(f"{crawler:>22}" for crawler in crawlers))
    for name, row in rows.items():
        print(f"{name:36}" + "".join(f"{each:>22}" for each in row))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pace")
    parser.add_argument("--hours", type=float, default=2)
    parser.add_argument("--delay", type=float, default=1)
    parser.add_argument("--status", type=int, default=429)
    parser.add_argument("--sockets", type=float, default=0)
    given = parser.parse_args()
    if given.sockets:
        on_sockets(given.sockets)
    else:
        in_virtual_time(given)


def in_virtual_time(given: argparse.Namespace) -> None:
    """Crawl each host by each law, and print what that gave."""
    own = polite.PacingPolicy(min_delay=given.delay)
    alone = polite.PacingPolicy(min_delay=given.delay, may_undercut_site=True)
    print("pages, of what was possible; requests refused")
    print(f"{'':36}{'polite':>16}{'AIMD':>16}{'a fixed delay':>16}")
    for host in HOSTS:
        laws = ((own, None), (alone, Aimd(given.delay)), (alone, MinDelay(given.delay)))
        row = [reached(host, given.hours, *law, status=given.status) for law in laws]
        print(
            f"{host:36}" + "".join(f"{pages:7.0f} {refused:5.1f} %  " for pages, refused in row), flush=True
        )


if __name__ == "__main__":
    main()
