"""The same crawl by an HTTP client alone and by that client with polite's lines, by the server's log and the client's CPU.

The crawler has a task per URL and a semaphore of 100 (`benchmarks/crawlers/with_client.py`). Alone, it has no delay at all, or a
lock per host that is held for the delay after each response; it reads no robots.txt. With polite, it is the one without a delay,
and its client has polite's lines. There a request that waits for its turn keeps its place in the semaphore, so efficiency falls
with more than 100 hosts; the row without a semaphore shows by how much.

The columns are those of `benchmarks.efficiency`; eta above 1 is faster than the delay permits. CPU is that of the client per 1,000
pages, once it is open. The ratio is to the client alone with a sleep.

`python -m benchmarks.adoption [--quick]`: takes some minutes. `--quick` is a small crawl whose figures say little. Exit status 1 if
a crawl with polite had a short gap, fetched a disallowed page, missed a page, or fetched a robots.txt more or less than once.
`python -m benchmarks.robots_fetch` compares the CPU of a robots.txt with that of a GET.
"""

import argparse
import sys
import tempfile
from importlib.util import find_spec

from benchmarks.adopted import crawl4ai, crawlee, playwright, scrapy
from benchmarks.efficiency import HEADINGS, columns, crawl, judge

ALONE = {"sleep": "alone, a sleep per host", "none": "alone, no delay"}
ON_HTTPX = {**ALONE, "transport": "polite.integrations.httpx"}
# The first way of each is what the ratio is to.
WAYS = {
    "aiohttp": {
        **ALONE,
        "middleware": "polite.integrations.aiohttp",
        "session": "polite.open_session",
        "tasks": "the same, no semaphore",
    },
    "httpx": ON_HTTPX,
    "httpx2": ON_HTTPX,
}
CRAWLS = ((100, 10, 0.5), (300, 5, 1.0))
QUICK = ((3, 3, 0.05),)


def polite_enough(seen: dict[str, float]) -> bool:
    return not (seen["short"] or seen["disallowed"] or seen["missing"]) and seen["robots"] == 1


def compare(client: str, hosts: int, pages: int, delay: float) -> bool:
    """Print a row for each way to crawl with a client. Return whether those with polite were polite."""
    held, base = True, 0.0
    for way, name in WAYS[client].items():
        with tempfile.NamedTemporaryFile("r") as file:
            log, _ = crawl("client", hosts, pages, delay, client, way, file.name)
            # A crawl that was ended has written nothing.
            cpu = float(file.read() or "nan")
        seen = judge(log, hosts, pages, delay)
        verdict = "" if way in ALONE else "held" if polite_enough(seen) else "NOT HELD"
        held &= verdict != "NOT HELD"
        cpu_s = cpu / max(1, hosts * pages - seen["missing"]) * 1e3
        base = base or cpu_s
        figures = f"{columns(seen)} {cpu_s:10.2f} {cpu_s / base:5.2f}x"
        print(f"{client:8}{name:28} {figures}  {verdict}".rstrip(), flush=True)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small crawl that shows that everything runs")
    held, quick = True, parser.parse_args().quick
    for hosts, pages, delay in QUICK if quick else CRAWLS:
        print(f"{f'{hosts} hosts x {pages} pages, {delay:g} s':36} {HEADINGS} CPU s/1000   ratio")
        for client in WAYS:
            if find_spec(client) is None:
                print(f"{client:8}not installed")
            else:
                held &= compare(client, hosts, pages, delay)
    held &= scrapy.compare(quick=quick)
    held &= crawlee.compare(quick=quick)
    held &= crawl4ai.compare(quick=quick)
    held &= playwright.compare(quick=quick)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
