"""crawlee alone and with polite (`benchmarks/crawlers/with_crawlee.py`), in its own environment: `./dev frameworks crawlee`.

Alone, it has its ThrottlingRequestManager and reads robots.txt. With polite, it must be polite, reach the efficiency of its crawl,
and take at most two thirds of the CPU. On a busy machine, both are slow, and only their ratio says something.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.efficiency import HEADINGS, columns, crawl, judge

KINDS = ("HttpCrawler", "BeautifulSoupCrawler", "ParselCrawler")
# Hosts, pages, delay, and the least efficiency.
CRAWLS = ((100, 10, 0.5, 0.94), (300, 5, 1.0, 0.92))
QUICK = ((3, 3, 0.05, 0.0),)
MOST_CPU = 2 / 3
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-crawlee" / "bin" / "python"


def compare(*, quick: bool) -> bool:
    """Print two rows for each kind of crawler. Return whether those with polite held."""
    python = sys.executable if find_spec("crawlee") and find_spec("parsel") else str(ENVIRONMENT)
    if not Path(python).exists():
        print("crawlee not installed: ./dev frameworks crawlee installs it")
        return True
    held = True
    for hosts, pages, delay, least in QUICK if quick else CRAWLS:
        print(f"{f'{hosts} hosts x {pages} pages, {delay:g} s':37} {HEADINGS} CPU s/1000   ratio")
        for kind in KINDS[:1] if (hosts, pages) == (300, 5) else KINDS:
            base = 0.0
            for way in ("alone", "polite"):
                seen, cpu_s = measured(python, hosts, pages, delay, kind, way)
                base = base or cpu_s
                polite = not (seen["short"] or seen["disallowed"] or seen["missing"]) and seen["robots"] == 1
                fast = quick or (seen["eta"] >= least and cpu_s <= MOST_CPU * base)
                verdict = "" if way == "alone" else "held" if polite and fast else "NOT HELD"
                held &= verdict != "NOT HELD"
                figures = f"{columns(seen)} {cpu_s:10.2f} {cpu_s / base:5.2f}x"
                print(f"{f'{kind}, {way}':37} {figures}  {verdict}".rstrip(), flush=True)
    return held


def measured(
    python: str, hosts: int, pages: int, delay: float, kind: str, way: str
) -> tuple[dict[str, float], float]:
    """Return what the server saw, and the crawler's CPU seconds per 1,000 pages."""
    with tempfile.NamedTemporaryFile("r") as file:
        log, _ = crawl("crawlee", hosts, pages, delay, kind, way, file.name, python=python)
        # A crawl that was ended has written nothing.
        cpu = float(file.read() or "nan")
    seen = judge(log, hosts, pages, delay)
    return seen, cpu / max(1, hosts * pages - seen["missing"]) * 1e3


if __name__ == "__main__":
    sys.exit(0 if compare(quick="--quick" in sys.argv[1:]) else 1)
