"""The how-to page, run as a reader would, against a server on loopback."""

import re
import subprocess
import sys
from pathlib import Path

from tests.integrations.site import Site

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/scrapy.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
# What a reader's crawl of the internet does not need.
HERE = 'import polite\nPOLITE = {"fetching": polite.FetchPolicy(allow_private=True)}\n'


def run(source: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=100, cwd=ROOT, check=True
    )
    return done.stdout


def test_the_page_prints_what_it_says(site: Site) -> None:
    (said,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    said = said.replace("About this site", "page /about").replace("/private/ (", "/private (")
    source = HERE + "".join(BLOCKS).replace(
        '"USER_AGENT": USER_AGENT', '"USER_AGENT": USER_AGENT, "POLITE": POLITE'
    )

    printed = run(source.replace("https://example.com", site.url("")))

    assert sorted(printed.splitlines()) == sorted(
        said.replace("https://example.com", site.url("")).splitlines()
    )
    assert site.paths == ["/about"]
