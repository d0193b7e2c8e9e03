"""`python -m benchmarks.judged [NAME ...]`: crawlers crawl the practice sites, one after the other, and one judge judges them.

Each has its own documented polite settings (`with_*.py` say which) and three minutes. `--runs N` prints medians, and
`--json FILE` keeps all that the judge said.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 180
AGENT = "JudgedBot/1.0 (+https://example.com/bot)"
# The manual's `--wait`. It obeys robots.txt unless it is told not to.
WGET = ["wget", "--quiet", "--recursive", "--level=inf", "--wait=1", "-erobots=on", f"--user-agent={AGENT}"]
# How each is installed.
NEEDS = {
    "scrapy": "./dev frameworks scrapy",
    "crawlee": "./dev frameworks crawlee",
    "crawl4ai": "./dev frameworks crawl4ai",
    "mcp-fetch": "uv venv .venv-mcp-fetch && uv pip install --python .venv-mcp-fetch mcp-server-fetch",
    "wget": "apt-get install wget",
    "polite": "",
}
COLUMNS = {
    "requests": "requests",
    "short_gaps": "short gaps",
    "after_redirect": "after redirect",
    "within_retry_after": "within Retry-After",
    "before_robots": "before robots.txt",
    "disallowed": "disallowed",
    "despite_5xx": "despite 5xx",
    "refused_again": "429 after 429",
    "robots_again": "robots.txt again",
    "missing": "not fetched",
    "efficiency": "efficiency",
}


def command(name: str) -> list[str]:
    """Return the command of a crawler, of which the seeds are the last arguments."""
    if name == "wget":
        return WGET
    if name == "polite":
        return [sys.executable, str(ROOT / "docs/examples/small_crawler.py")]
    python = ROOT / f".venv-{name}" / "bin" / "python"
    return [str(python), str(Path(__file__).with_name(f"with_{name.replace('-', '_')}.py"))]


def judged(name: str) -> dict[str, Any]:
    """Return what the judge says of one crawl. What the crawler prints is left out."""
    judge = [sys.executable, "-m", "polite", "judge", "--serve", "--port", "0", "--delay", "1", "--json"]
    limited = ["timeout", "--kill-after=5", str(LIMIT_S), *command(name), "{}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [*judge, "--", *limited], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    if ended.returncode == 2:
        sys.exit(f"{name}: {ended.stderr}")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def row(name: str, runs: list[dict[str, Any]]) -> str:
    """Return a row of the table: the medians."""
    medians = (median(run[column] or 0.0 for run in runs) for column in COLUMNS)
    return f"| {' | '.join([name, *(f'{each:.3g}' for each in medians)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judged", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NEEDS))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", type=Path)
    options = parser.parse_args()
    if unknown := set(options.names) - NEEDS.keys():
        parser.error(f"no crawler is called {', '.join(sorted(unknown))}")
    found: dict[str, list[dict[str, Any]]] = {}
    for name in options.names or NEEDS:
        if not shutil.which(command(name)[0]):
            print(f"{name} is not installed: {NEEDS[name]}")
            continue
        found[name] = [judged(name) for _ in range(options.runs)]
        print(f"{name} done", file=sys.stderr)
    print(f"| crawler | {' | '.join(COLUMNS.values())} |\n|{'---|' * (len(COLUMNS) + 1)}")
    print("\n".join(row(name, runs) for name, runs in found.items()))
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
