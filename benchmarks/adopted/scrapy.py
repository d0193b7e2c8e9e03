"""Scrapy alone and with polite's add-on (`benchmarks/crawlers/with_scrapy.py`), in its own environment: `./dev frameworks scrapy`.

Alone, it has an exact delay, one request per host at a time, and reads robots.txt. With polite, it must be polite, take at most 1.1
times the CPU, and reach a share of the efficiency alone: 0.95 where places are ample, 1.5 where they are scarce: one host after the
other with 32 places. On a busy machine both are slow: alone, the delay runs from the sending of a request; with polite, from its
response, which is what the server sees.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.efficiency import HEADINGS, columns, crawl, judge

# Hosts, pages, delay, order, places (0: twice the hosts), and the least share of the efficiency alone.
CRAWLS = (
    (100, 10, 0.5, "alternating", 0, 0.95),
    (300, 5, 1.0, "alternating", 0, 0.95),
    (100, 10, 0.5, "hosts", 32, 1.5),
)
QUICK = ((3, 3, 0.05, "alternating", 0, 0.0),)
MOST_CPU = 1.1
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-scrapy" / "bin" / "python"


def compare(*, quick: bool) -> bool:
    """Print two rows for each crawl. Return whether those with polite held."""
    python = sys.executable if find_spec("scrapy") else str(ENVIRONMENT)
    if not Path(python).exists():
        print("scrapy not installed: ./dev frameworks scrapy installs it")
        return True
    held = True
    for hosts, pages, delay, order, places, least in QUICK if quick else CRAWLS:
        print(f"{f'{hosts} hosts x {pages} pages, {delay:g} s':37} {HEADINGS} CPU s/1000   ratio")
        alone, base = measured(python, hosts, pages, delay, "alone", order, places)
        seen, cpu_s = measured(python, hosts, pages, delay, "polite", order, places)
        polite = not (seen["short"] or seen["disallowed"] or seen["missing"]) and seen["robots"] == 1
        fast = quick or (seen["eta"] >= least * alone["eta"] and cpu_s <= MOST_CPU * base)
        named = "Scrapy" if order == "alternating" else f"Scrapy, {order}, {places} places"
        print(f"{f'{named}, alone':37} {columns(alone)} {base:10.2f} {1:5.2f}x")
        verdict = "held" if polite and fast else "NOT HELD"
        print(
            f"{f'{named}, polite':37} {columns(seen)} {cpu_s:10.2f} {cpu_s / base:5.2f}x  {verdict}",
            flush=True,
        )
        held &= verdict == "held"
    return held


def measured(
    python: str, hosts: int, pages: int, delay: float, way: str, order: str, places: int
) -> tuple[dict[str, float], float]:
    """Return what the server saw, and the crawler's CPU seconds per 1,000 pages."""
    with tempfile.NamedTemporaryFile("r") as file:
        log, _ = crawl("scrapy", hosts, pages, delay, way, order, str(places), file.name, python=python)
        # A crawl that was ended has written nothing.
        cpu = float(file.read() or "nan")
    seen = judge(log, hosts, pages, delay)
    return seen, cpu / max(1, hosts * pages - seen["missing"]) * 1e3


if __name__ == "__main__":
    sys.exit(0 if compare(quick="--quick" in sys.argv[1:]) else 1)
