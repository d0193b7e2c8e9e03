"""Chromium alone and with polite (`benchmarks/crawlers/with_playwright.py`), in its own environment: `./dev frameworks playwright`.

CPU is that of Python: the browser takes many times as much. Icons, which a browser requests by itself, are left out of the gaps.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.crawlers.with_playwright import CHROMIUM
from benchmarks.efficiency import HEADINGS, columns, crawl, judge

WAYS = {
    "sleep": "alone, a sleep per host",
    "none": "alone, no delay",
    "polite": "polite.integrations.playwright",
}
CRAWLS = ((10, 10, 0.5),)
QUICK = ((2, 2, 0.05),)
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-playwright" / "bin" / "python"


def compare(*, quick: bool) -> bool:
    """Print a row for each way to crawl. Return whether that with polite was polite."""
    python = sys.executable if find_spec("playwright") else str(ENVIRONMENT)
    if not Path(python).exists():
        print("playwright not installed: ./dev frameworks playwright installs it")
        return True
    if not Path(CHROMIUM).exists():
        print(f"playwright has no browser: there is no {CHROMIUM}")
        return True
    held = True
    for hosts, pages, delay in QUICK if quick else CRAWLS:
        print(f"{f'{hosts} hosts x {pages} pages, {delay:g} s':40} {HEADINGS} CPU s/1000   ratio")
        base = 0.0
        for way, name in WAYS.items():
            with tempfile.NamedTemporaryFile("r") as file:
                log, _ = crawl("playwright", hosts, pages, delay, way, file.name, python=python)
                cpu = float(file.read() or "nan")
            seen = judge([hit for hit in log if hit[2] != "/favicon.ico"], hosts, pages, delay)
            cpu_s = cpu / max(1, hosts * pages - seen["missing"]) * 1e3
            base = base or cpu_s
            polite = not (seen["short"] or seen["disallowed"] or seen["missing"]) and seen["robots"] == 1
            verdict = "" if way != "polite" else "held" if polite else "NOT HELD"
            held &= verdict != "NOT HELD"
            figures = f"{columns(seen)} {cpu_s:10.2f} {cpu_s / base:5.2f}x"
            print(f"{f'Chromium {name}':40} {figures}  {verdict}".rstrip(), flush=True)
    return held


if __name__ == "__main__":
    sys.exit(0 if compare(quick="--quick" in sys.argv[1:]) else 1)
