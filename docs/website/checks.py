"""Faults of the built site: links and anchors that lead nowhere, and anything that a browser would load from another host."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose value a browser loads without a click. `href` is one too, except on these elements.
_LOADED = {"src", "srcset", "poster", "data", "background", "xlink:href", "action", "formaction"}
_CLICKED = {"a", "area"}
# A `link` of these kinds is information for programs. A browser loads nothing for it.
_NOT_LOADED = {"canonical", "prev", "next", "alternate", "describedby", "license"}
_CSS_LOADS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")


@dataclass
class _Page(HTMLParser):
    """What one HTML page refers to."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    in_style: bool = False
    policy: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.in_style = tag == "style"
        self.loaded += _CSS_LOADS.findall(values.get("style", ""))
        for name in _LOADED & values.keys():
            self.loaded += [part.split()[0] for part in values[name].split(",") if part.strip()]
        if tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = values.get("content", "")
        if "href" in values:
            loads = tag not in _CLICKED and not _NOT_LOADED & set(values.get("rel", "").split())
            (self.loaded if loads else self.links).append(values["href"])

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.loaded += _CSS_LOADS.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False


def faults(site: Path) -> Iterator[str]:
    """Yield a message for each fault of the site in a folder: the file, what is wrong, and the value."""
    pages = {file.relative_to(site).as_posix(): _read(file) for file in sorted(site.rglob("*.html"))}
    for name, page in pages.items():
        yield from _foreign(name, page.loaded)
        if "default-src 'none'" not in page.policy:
            yield f"{name}: no Content-Security-Policy that forbids other hosts"
        for link in [*page.links, *page.loaded]:
            yield from _broken(site, pages, name, link)
    for file in sorted(site.rglob("*.css")):
        yield from _foreign(file.relative_to(site).as_posix(), _CSS_LOADS.findall(file.read_text()))


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text())
    return page


def _foreign(name: str, loaded: list[str]) -> Iterator[str]:
    for url in loaded:
        parts = urlsplit(url)
        if parts.netloc or parts.scheme not in {"", "data"}:
            yield f"{name}: loads {url} from another host"


def _broken(site: Path, pages: dict[str, _Page], name: str, link: str) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    target = _target(name, unquote(parts.path))
    if target.startswith("..") or not (site / target).exists():
        yield f"{name}: links to {link}, which does not exist"
    elif (site / target).is_dir() and not (site / target / "index.html").exists():
        yield f"{name}: links to {link}, a folder without a page"
    elif target in pages and not _has_anchor(pages[target], unquote(parts.fragment)):
        yield f"{name}: links to {link}, whose anchor does not exist"


def _target(name: str, path: str) -> str:
    """Return the file of the site that a link of a page leads to."""
    if not path:
        return name
    # The page of errors is served at every path. Its links therefore start at the root.
    folder = "" if path.startswith("/") else posixpath.dirname(name)
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/") or "index.html"))


def _has_anchor(page: _Page, fragment: str) -> bool:
    # The builder's own scripts and every browser know the empty fragment and #top without an element.
    return fragment in {"", "top"} or fragment in page.anchors
