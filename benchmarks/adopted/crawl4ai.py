"""crawl4ai alone and with polite (`benchmarks/crawlers/with_crawl4ai.py`), in its own environment: `./dev frameworks crawl4ai`."""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.efficiency import HEADINGS, columns, crawl, judge

WAYS = {
    "alone": "alone, its rate limiter",
    "defaults": "alone, its defaults",
    "polite": "polite.integrations.crawl4ai",
}
CRAWLS = ((40, 5, 1.0), (100, 10, 0.5))
QUICK = ((3, 3, 0.05),)
# From the first request to the last, over the time that the delay makes necessary.
LIMIT = 1.15
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-crawl4ai" / "bin" / "python"


def compare(*, quick: bool) -> bool:
    """Print a row for each way to crawl. Return whether that with polite was polite, and took at most LIMIT times the ideal."""
    python = sys.executable if find_spec("crawl4ai") else str(ENVIRONMENT)
    if not Path(python).exists():
        print("crawl4ai not installed: ./dev frameworks crawl4ai installs it")
        return True
    held = True
    for hosts, pages, delay in QUICK if quick else CRAWLS:
        print(f"{f'{hosts} hosts x {pages} pages, {delay:g} s':37} {HEADINGS} CPU s/1000   ratio    ideal")
        base = 0.0
        for way, name in WAYS.items():
            with tempfile.NamedTemporaryFile("r") as file:
                log, _ = crawl("crawl4ai", hosts, pages, delay, way, file.name, python=python)
                cpu = float(file.read() or "nan")
            seen = judge(log, hosts, pages, delay)
            ideal = span(log) / (pages * delay)
            cpu_s = cpu / max(1, hosts * pages - seen["missing"]) * 1e3
            base = base or cpu_s
            polite = not (seen["short"] or seen["disallowed"] or seen["missing"]) and seen["robots"] == 1
            fast = quick or ideal <= LIMIT
            verdict = "" if way != "polite" else "held" if polite and fast else "NOT HELD"
            held &= verdict != "NOT HELD"
            figures = f"{columns(seen)} {cpu_s:10.2f} {cpu_s / base:5.2f}x {ideal:6.2f}x"
            print(f"crawl4ai {name:28} {figures}  {verdict}".rstrip(), flush=True)
    return held


def span(log: list[list]) -> float:
    """Seconds from the first request, which is for robots.txt, to the last. Each page comes a delay after what was before."""
    times = [hit[0] for hit in log]
    return max(times) - min(times) if times else float("nan")


if __name__ == "__main__":
    sys.exit(0 if compare(quick="--quick" in sys.argv[1:]) else 1)
