"""Builds the site: stages the sources, runs Zensical over them, orders the search, adds llms.txt, and checks the result."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.website.api_text import ApiText
from docs.website.checks import faults
from docs.website.llms import llms_full_txt, llms_txt
from docs.website.navigation import Section, navigation
from docs.website.search import ordered
from docs.website.sources import Sources
from docs.website.staging import stage

_CONFIGURATION = Path(__file__).with_name("zensical.toml")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"(?:Warning|Error): (?P<what>.+)\n\s*╭─\[ (?P<page>\S+?):(?P<line>\d+):\d+ \]")


@dataclass(frozen=True)
class Site:
    """The site of a checkout.

    Args:
        root: The checkout.
        out: The folder of the built site. It is built in another beside it, `<out>-build`.
    """

    root: Path
    out: Path
    configuration: dict[str, Any] = field(
        default_factory=lambda: tomllib.loads(_CONFIGURATION.read_text()), repr=False
    )

    @property
    def sources(self) -> Sources:
        """The files of the site, read anew from the checkout each time."""
        return Sources(self.root)

    def navigation(self, sources: Sources) -> Section:
        """Return the order of the pages.

        Raises:
            NavigationError: zensical.toml names a page that does not exist, or names one twice.
        """
        places = (sources.pages | sources.listings).values()
        return navigation(self.configuration["project"]["nav"], sorted(places))

    def build(self, *, anew: bool = True) -> list[str]:
        """Build the site, and return a message for each fault, with the file and line where they are known.

        Args:
            anew: Render every page. If false, only those whose text has changed: a page of the API reference does not
                change with the docstrings that it shows.

        Raises:
            NavigationError: zensical.toml names a page that does not exist, or names one twice.
        """
        sources = self.sources
        order = self.navigation(sources)
        work = self.out.with_name(f"{self.out.name}-build")
        broken = stage(sources, work / "pages")
        if broken:
            return broken
        shutil.rmtree(work / "html", ignore_errors=True)
        (work / "mkdocs.yml").write_text(json.dumps(self._for_zensical(order)))
        reported = _zensical(work / "mkdocs.yml", sources, anew=anew)
        if reported:
            return reported
        _order_search(work / "html" / "search.json")
        self._write_plain_text(order, work)
        shutil.rmtree(self.out, ignore_errors=True)
        (work / "html").rename(self.out)
        return list(faults(self.out))

    def _for_zensical(self, order: Section) -> dict[str, Any]:
        """Return the configuration with the whole navigation. JSON is YAML, which Zensical reads as mkdocs.yml."""
        folders = {"docs_dir": "pages", "site_dir": "html"}
        text = json.dumps(self.configuration["project"]).replace("{root}", json.dumps(str(self.root))[1:-1])
        written: dict[str, Any] = json.loads(text)
        return written | folders | {"nav": order.written()}

    def _write_plain_text(self, order: Section, work: Path) -> None:
        texts = {page: (work / "pages" / page).read_text() for page in order.pages()}
        reference = ApiText(self.root, "polite")
        texts = {page: reference.filled(text) for page, text in texts.items()}
        for page, text in texts.items():
            (work / "html" / page).write_text(text)
        optional = self.configuration["llms"]["optional"]
        (work / "html" / "llms.txt").write_text(llms_txt(order, texts, optional))
        (work / "html" / "llms-full.txt").write_text(llms_full_txt(order, texts, optional))


def _order_search(index: Path) -> None:
    index.write_text(json.dumps(ordered(json.loads(index.read_text()))))


def _zensical(configuration: Path, sources: Sources, *, anew: bool) -> list[str]:
    """Run the builder. It stops at a broken link or anchor, and says where it is."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(configuration)]
    if anew:
        command.append("--clean")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0:
        return []
    said = _COLOUR.sub("", done.stdout)
    return list(_warnings(said, sources)) or [f"zensical build failed:\n{said}"]


def _warnings(said: str, sources: Sources) -> Iterator[str]:
    """Yield what Zensical found. The copy has the lines of the source, so that only the file's name differs."""
    for match in _WARNING.finditer(said):
        yield f"{sources.origin(match['page'])}:{match['line']}: {match['what']}"
