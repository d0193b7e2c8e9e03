"""How close a crawl comes to the least time that politeness permits, and how often it is impolite, by the server's log.

Efficiency is (pages - 1) x delay, over the time between the first and the last page that the server saw: 1.0 is the physical
limit for equal hosts. A gap is short if two requests for pages of a host, or for its robots.txt and a page, are closer than the
delay by more than a twentieth. Scrapy and crawlee run as well if they are installed (`uv pip install scrapy crawlee`).

`python -m benchmarks.efficiency [all]`: the first run of the table, or all of them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from polite.judge.verdict import Expected, Request, judge_all

RUNS = ((100, 10, 0.5, 0.97), (300, 5, 1.0, 0.97), (500, 10, 0.5, 0.94))
CRAWLERS = ("polite", "scrapy", "crawlee")
# A gap may be shorter by this share, as in polite judge: crawlers that count from the sending of a request vary.
TOLERANCE, LIMIT_S = 0.05, 150.0
HEADINGS = f"{'eta':>6} {'short gaps':>10} {'shortest':>9} {'disallowed':>10} {'robots':>6} {'missing':>7}"


def crawl(
    crawler: str, hosts: int, pages: int, delay: float, *options: str, python: str = sys.executable
) -> tuple[list[list], float]:
    """Run a crawl with an interpreter. Return the server's log and the client's CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        serving = [sys.executable, "-m", "benchmarks.hosts", "--hosts", str(hosts), "--log", str(log)]
        with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            program = [python, "-m", f"benchmarks.crawlers.with_{crawler}"]
            cpu = run([*program, str(hosts), str(pages), str(delay), port, *options])
            server.terminate()
        return read_log(log), cpu


def read_log(log: Path) -> list[list]:
    """Return each request as seconds, host, path and status."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def run(command: list[str]) -> float:
    """Run a process, with a limit on its time. Return its CPU seconds as the system counts them."""
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    while True:
        pid, _, used = os.wait4(client.pid, os.WNOHANG)
        if pid:
            client.returncode = 0
            return used.ru_utime + used.ru_stime
        if time.monotonic() - started > LIMIT_S:
            client.kill()
        time.sleep(0.02)


def judge(log: list[list], hosts: int, pages: int, delay: float) -> dict[str, float]:
    expected = Expected(delay, pages=[f"/p/{page}" for page in range(pages)], tolerance_s=TOLERANCE * delay)
    verdicts = judge_all(range(hosts), lambda host: expected, (Request(*hit) for hit in log)).values()
    fetched = [hit[0] for hit in log if hit[2].startswith("/p/")]
    return {
        "eta": (pages - 1) * delay / (max(fetched) - min(fetched)) if fetched else float("nan"),
        "missing": sum(path not in each.pages for each in verdicts for path in expected.pages or ()),
        "short": sum(len(each.short) for each in verdicts),
        "shortest": min((gap for each in verdicts for gap in each.gaps), default=float("nan")),
        "disallowed": sum(hit[2].startswith("/private") for hit in log),
        "robots": max(each.robots for each in verdicts),
    }


def columns(seen: dict[str, float]) -> str:
    """Return a verdict of `judge` as columns under HEADINGS."""
    return (
        f"{seen['eta']:6.3f} {seen['short']:10} {seen['shortest'] * 1e3:6.0f} ms {seen['disallowed']:10} "
        f"{seen['robots']:6} {seen['missing']:7}"
    )


def main() -> None:
    runs = RUNS if "all" in sys.argv[1:] else RUNS[:1]
    print(f"{'':31} {HEADINGS} CPU s/1000")
    for hosts, pages, delay, least in runs:
        for crawler in CRAWLERS:
            if crawler != "polite" and find_spec(crawler) is None:
                print(f"{hosts} x {pages}, {delay:g} s{'':8} {crawler:8} not installed")
                continue
            log, cpu = crawl(crawler, hosts, pages, delay)
            seen = judge(log, hosts, pages, delay)
            target = f"  (at least {least}, no short gap)" if crawler == "polite" else ""
            print(
                f"{f'{hosts} x {pages}, {delay:g} s':22} {crawler:8} {columns(seen)} {cpu / max(1, len(log)) * 1e3:10.2f}{target}",
                flush=True,
            )


if __name__ == "__main__":
    main()
