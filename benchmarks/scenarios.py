"""Special crawls, by the server's log: Crawl-delay, slow pages, other orders, error responses, unequal hosts.

Each is compared with its bound: the least time that politeness permits from the first request to the last, for the slowest host.
A gap lasts from the arrival of one request to the next, so a response that takes 0.2 s lengthens it by that (the delay starts
at the response's head). `python -m benchmarks.scenarios [NAME ...]`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.efficiency import read_log, run
from benchmarks.hosts import address
from polite.judge.verdict import Expected, Request, judge_all

RETRY_AFTER_S, TOLERANCE_S = 2.0, 0.001


class Scenario(NamedTuple):
    """One crawl.

    Attributes:
        sizes: the number of pages of each host.
        delays: Crawl-delays, which alternate between hosts.
        least_s: the crawler's own least delay.
        statuses: statuses, which alternate between the pages of each host.
        grouped: whether URLs are ordered by host instead of alternating.
        least_eta: the target for efficiency; by default the plain run's, less 3 %.
    """

    sizes: Sequence[int]
    least_s: float = 0.5
    delays: Sequence[float] = ()
    latency_s: float = 0.0
    robots_latency_s: float = 0.0
    statuses: Sequence[int] = (200,)
    grouped: bool = False
    least_eta: float | None = None

    def delay_s(self, host: int) -> float:
        requested = self.delays[host % len(self.delays)] if self.delays else 0.0
        return max(self.least_s, requested)

    def gap_s(self, host: int, status: int) -> float:
        """Return the least time from a request with this response to the next one."""
        return max(self.delay_s(host), RETRY_AFTER_S if status == 429 else 0.0)

    def pages(self, host: int) -> list[str]:
        return [f"/p/{page}" for page in range(self.sizes[host])]

    def expected(self, host: int) -> Expected:
        """Return what the judge expects of a crawl of a host."""
        return Expected(
            self.least_s,
            self.delay_s(host),
            lambda status: RETRY_AFTER_S if status == 429 else 0.0,
            pages=self.pages(host),
            tolerance_s=TOLERANCE_S,
        )

    @property
    def bound_s(self) -> float:
        return max(
            self.robots_latency_s
            + self.delay_s(host)
            + sum(
                self.gap_s(host, self.statuses[page % len(self.statuses)]) + self.latency_s
                for page in range(size - 1)
            )
            for host, size in enumerate(self.sizes)
        )

    def urls(self, port: int) -> list[str]:
        pages = [(page, host) for host, size in enumerate(self.sizes) for page in range(size)]
        pages.sort(key=_by_host if self.grouped else _by_page)
        fetched = [f"http://{address(host)}:{port}/p/{page}" for page, host in pages]
        return [*fetched, *(f"http://{address(host)}:{port}/private/x" for host in range(len(self.sizes)))]


def _by_page(page: tuple[int, int]) -> tuple[int, int]:
    return page


def _by_host(page: tuple[int, int]) -> tuple[int, int]:
    return page[1], page[0]


PLAIN = "plain: 100 hosts x 10 pages, 0.5 s"
SCENARIOS = {
    PLAIN: Scenario([10] * 100, least_eta=0.97),
    "Crawl-delay 0.5, 1 and 1.5 s in robots.txt only": Scenario(
        [7] * 60, least_s=0.0, delays=(0.5, 1.0, 1.5)
    ),
    "a delay of 0.7 s": Scenario([8] * 60, least_s=0.7),
    "pages that take 0.2 s": Scenario([8] * 60, latency_s=0.2),
    "host after host": Scenario([10] * 100, grouped=True),
    "robots.txt that takes 0.5 s": Scenario([10] * 60, robots_latency_s=0.5),
    "200, 404, 301, 500 and 204": Scenario([10] * 60, statuses=(200, 404, 301, 500, 204)),
    "429 with Retry-After: 2": Scenario([8] * 60, statuses=(200, 200, 200, 429, 200, 200, 200, 200)),
    "1 to 200 pages by Zipf, 0.1 to 0.5 s": Scenario(
        [max(1, 200 // (host + 1)) for host in range(100)],
        least_s=0.1,
        delays=(0.1, 0.2, 0.5),
        least_eta=0.95,
    ),
}


def crawl(scenario: Scenario) -> list[list]:
    """Run a crawl and return the server's log."""
    with tempfile.TemporaryDirectory() as folder:
        log, wanted = Path(folder) / "log", Path(folder) / "urls"
        options = {
            "--hosts": len(scenario.sizes),
            "--log": log,
            "--crawl-delay": ",".join(map(str, scenario.delays)),
            "--latency": scenario.latency_s,
            "--robots-latency": scenario.robots_latency_s,
            "--statuses": ",".join(map(str, scenario.statuses)),
            "--retry-after": int(RETRY_AFTER_S),
        }
        serving = [
            sys.executable,
            "-m",
            "benchmarks.hosts",
            *(str(part) for pair in options.items() for part in pair),
        ]
        with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            wanted.write_text("\n".join(scenario.urls(port)))
            run([sys.executable, "-m", "benchmarks.crawlers.with_polite", str(wanted), str(scenario.least_s)])
            server.terminate()
        return read_log(log)


def judge(scenario: Scenario, log: list[list]) -> tuple[float, int, int]:
    """Return efficiency, the number of gaps short by more than 1 ms, and the number of other faults.

    Other faults are a page not fetched or fetched twice, a disallowed page fetched, and robots.txt not fetched exactly once.
    """
    verdicts = judge_all(range(len(scenario.sizes)), scenario.expected, (Request(*hit) for hit in log))
    short = sum(len(each.short) for each in verdicts.values())
    wrong = sum(
        sum(each.pages[path] != 1 for path in scenario.pages(host))
        + len(each.disallowed)
        + len(each.unlinked)
        + (each.robots != 1)
        for host, each in verdicts.items()
    )
    arrivals = [hit[0] for hit in log]
    return scenario.bound_s / (max(arrivals) - min(arrivals)) if len(log) > 1 else 0.0, short, wrong


def main(only: Callable[[str], bool]) -> None:
    """Print the table."""
    print(f"{'':50} {'bound s':>8} {'eta':>6} {'short gaps':>10} {'other faults':>12}")
    plain = 0.0
    for name, scenario in SCENARIOS.items():
        if name != PLAIN and not only(name):
            continue
        eta, short, wrong = judge(scenario, crawl(scenario))
        plain = plain or eta
        least = plain * 0.97 if scenario.least_eta is None else scenario.least_eta
        verdict = "held" if eta >= least and not short and not wrong else "NOT HELD"
        print(
            f"{name:50} {scenario.bound_s:8.1f} {eta:6.3f} {short:10} {wrong:12}  (at least {least:.3f}: {verdict})",
            flush=True,
        )


if __name__ == "__main__":
    names = sys.argv[1:]
    main(lambda name: not names or any(each in name for each in names))
