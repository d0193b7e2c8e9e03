"""The order of the site's pages: sections of titles, pages and patterns, as zensical.toml lists them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Section:
    """A title in the navigation with what is below it."""

    title: str
    entries: "tuple[Entry, ...]"

    def pages(self) -> Iterator[str]:
        """Yield every page below the title, in order."""
        for entry in self.entries:
            if isinstance(entry, str):
                yield entry
            else:
                yield from entry.pages()

    def written(self) -> list[Any]:
        """Return the entries as Zensical reads them: a page, or a title with its entries."""
        return [entry if isinstance(entry, str) else {entry.title: entry.written()} for entry in self.entries]


Entry: TypeAlias = str | Section


class NavigationError(Exception):
    """The navigation names a page that does not exist, or names one twice."""


def navigation(nav: Sequence[Any], pages: Sequence[str]) -> Section:
    """Return the navigation with each pattern replaced by the pages it matches.

    A page that is named stands where it is named. The first pattern that matches takes each other page, so that a new
    file needs no new line. A section without pages is left out. A section's index.md comes first.

    Args:
        nav: The list `nav` of zensical.toml. An entry is a page's path, a pattern with `*`, or `{title = [entries]}`.
        pages: All pages of the site.

    Raises:
        NavigationError: A named page does not exist or is named twice.
    """
    named = list(_named(nav))
    for page in named:
        if page not in pages:
            raise NavigationError(f"docs/website/zensical.toml: nav names {page}, which does not exist")
        if named.count(page) > 1:
            raise NavigationError(f"docs/website/zensical.toml: nav names {page} twice")
    unnamed = [page for page in pages if page not in named]
    return Section("", tuple(_entries(nav, unnamed)))


def _named(nav: Sequence[Any]) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, dict):
            for entries in entry.values():
                yield from _named(entries)
        elif "*" not in entry:
            yield entry


def _entries(nav: Sequence[Any], unnamed: list[str]) -> Iterator[Entry]:
    """Take pages out of `unnamed` as patterns match them. `*` matches no `/`."""
    for entry in nav:
        if isinstance(entry, dict):
            for title, entries in entry.items():
                section = Section(title, tuple(_entries(entries, unnamed)))
                if section.entries:
                    yield section
        elif "*" in entry:
            matching = [page for page in unnamed if _matches(page, entry)]
            for page in sorted(matching, key=lambda page: not page.endswith("index.md")):
                unnamed.remove(page)
                yield page
        else:
            yield entry


def _matches(page: str, pattern: str) -> bool:
    return page.count("/") == pattern.count("/") and fnmatchcase(page, pattern)
