"""XmlReader: sitemaps, indexes, RSS and Atom, read with expat and guarded against hostile XML."""

import re
from typing import Final
from xml.parsers import expat

from polite.sitemaps.entry import LONGEST_URL, Alternate, Findings, SitemapEnded, SitemapKind

# Octets that expat may hold of a token that has not ended. Before 2.6, expat reads such a token again with each chunk, so 8 MB of
# one attribute took 12 s (CVE-2023-52425).
_LONGEST_TOKEN = 262_144
# Expat keeps each name, and each open element, for as long as it parses.
_MOST_NAMES = 1_000
_LONGEST_NAME = 256
_DEEPEST = 100
_MOST_ATTRIBUTES = 100
_MOST_ALTERNATES = 200

# Python has many more codecs, and some of them are no encodings of files.
_ENCODINGS: Final = re.compile(
    r"utf-?8|utf-?16([bl]e)?|(us-)?ascii|iso-?8859-?\d\d?|latin-?\d|windows-\d{3,4}|cp-?\d{3,4}|koi8-[rtu]",
    re.IGNORECASE,
)
# By root element: the format, and the elements that name something. Some indexes have `url` elements, and some url sets `sitemap`.
_KINDS: Final = {
    "urlset": (SitemapKind.URLSET, {"url", "sitemap"}),
    "sitemapindex": (SitemapKind.INDEX, {"url", "sitemap"}),
    "rss": (SitemapKind.RSS, {"item"}),
    "rdf": (SitemapKind.RSS, {"item"}),  # RSS 1.0
    "feed": (SitemapKind.ATOM, {"entry"}),
}
# Their children that count. Of two with one meaning, the first in this order wins.
_LOCATIONS: Final = ("loc", "link", "guid")
_DATES: Final = ("lastmod", "updated", "pubdate", "modified", "published", "date")
_FIELDS: Final = {
    "url": {"loc", "lastmod", "changefreq", "priority"},
    "sitemap": {"loc", "lastmod"},
    "item": {"link", "guid", "pubdate"},
    "entry": {"updated", "modified", "published"},
}


class XmlReader:
    """Reads one XML file. An element counts under any namespace, since real files have wrong ones, or none.

    A child counts if it has the same prefix as its parent: `image:loc` is no `loc`.

    Args:
        findings: Takes the entries and links.
        encoding: Replaces the one that the file declares.

    Attributes:
        ended: Whether the root element was closed. What follows it is not read.
    """

    def __init__(self, findings: Findings, encoding: str | None = None) -> None:
        self.ended: bool = False
        self._findings = findings
        # Without a dictionary of names, which would keep each one twice.
        self._expat = parser = expat.ParserCreate(encoding, None, None)
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        self._names: dict[str, tuple[str, str]] = {}
        self._fed = 0
        self._depth = 0
        self._items: set[str] = set()
        self._item = ""  # the open item's name
        self._item_prefix = ""
        self._item_depth = 0
        self._values: dict[str, str] = {}
        self._alternates: list[Alternate] = []
        self._field = ""  # the open field's name
        self._text: list[str] = []
        self._length = 0

    def feed(self, data: bytes) -> None:
        """Read a chunk. Raises SitemapEnded."""
        self._parse(data, final=False)
        self._fed += len(data)
        if not self.ended and self._fed - self._expat.CurrentByteIndex > _LONGEST_TOKEN:
            raise SitemapEnded(f"a tag, comment or other token is longer than {_LONGEST_TOKEN} octets")

    def close(self) -> None:
        """End the file. Raises SitemapEnded if its root element is open."""
        self._parse(b"", final=True)

    def _parse(self, data: bytes, *, final: bool) -> None:
        if self.ended:
            return
        try:
            self._expat.Parse(data, final)
        except expat.ExpatError as error:
            if not self.ended:
                raise SitemapEnded(f"the XML is not well-formed: {error}") from error
        except (ValueError, LookupError) as error:
            # Python does not know the encoding, or it has several octets for a character.
            raise SitemapEnded(f"the XML cannot be decoded: {error}") from error

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            raise SitemapEnded(f"the XML has an unknown encoding: {encoding[:50]!r}")

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        # No sitemap needs one: it declares entities, or attributes that each element then has.
        if internal:
            raise SitemapEnded("the XML declares entities or attributes in its DOCTYPE")

    def _entity(self, *_: object) -> None:
        raise SitemapEnded("the XML declares an entity")

    def _start(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SitemapEnded(f"more than {_DEEPEST} elements are nested")
        prefix, local = self._names.get(name) or self._learn(name)
        if len(attributes) > 2 * _MOST_ATTRIBUTES:
            raise SitemapEnded(f"an element has more than {_MOST_ATTRIBUTES} attributes")
        for attribute in attributes[::2]:
            if attribute not in self._names:
                self._learn(attribute)
        if self._item:
            if self._depth == self._item_depth + 1:
                self._child(prefix, local, attributes)
        elif self._depth == 1:
            if local not in _KINDS:
                raise SitemapEnded(f"no sitemap: the root element is {local[:50]!r}")
            self._findings.kind, self._items = _KINDS[local]
        elif local in self._items:
            self._item, self._item_prefix, self._item_depth = local, prefix, self._depth
            self._values, self._alternates = {}, []

    def _learn(self, name: str) -> tuple[str, str]:
        """Return a new name's prefix, and the name itself in lower case."""
        if len(name) > _LONGEST_NAME or len(self._names) >= _MOST_NAMES:
            most, longest = _MOST_NAMES, _LONGEST_NAME
            raise SitemapEnded(f"more than {most} different names, or one of more than {longest} characters")
        prefix, _, local = name.rpartition(":")
        self._names[name] = found = prefix, local.lower()
        return found

    def _child(self, prefix: str, local: str, attributes: list[str]) -> None:
        if local == "link" and attributes and self._item != "item":
            if self._item != "entry" or prefix == self._item_prefix:
                self._link(_by_name(attributes))
        elif (prefix == self._item_prefix and local in _FIELDS[self._item]) or local == "date":
            if local == "guid" and _by_name(attributes).get("isPermaLink") == "false":
                return
            self._field, self._text, self._length = local, [], 0
            self._expat.CharacterDataHandler = self._characters

    def _link(self, attributes: dict[str, str]) -> None:
        """`xhtml:link` of a url, or the link of an Atom entry."""
        reference = attributes.get("href", "").strip()
        if "alternate" not in attributes.get("rel", "alternate").lower().split():
            return
        if self._item == "entry" and "link" not in self._values:
            self._values["link"] = reference
        elif len(self._alternates) < _MOST_ALTERNATES:
            found = self._findings.alternate(reference, attributes.get("hreflang"), attributes.get("media"))
            if found is not None:
                self._alternates.append(found)

    def _characters(self, text: str) -> None:
        # A field that is too long is no URL and no date. The rest of it need not be kept.
        if self._length <= LONGEST_URL:
            self._length += len(text)
            self._text.append(text)

    def _end(self, _: str) -> None:
        depth, self._depth = self._depth, self._depth - 1
        if self._item:
            if self._field and depth == self._item_depth + 1:
                self._expat.CharacterDataHandler = None
                self._values.setdefault(self._field, "".join(self._text).strip())
                self._field = ""
            elif depth == self._item_depth:
                self._finish()
        if depth == 1:
            self.ended = True

    def _finish(self) -> None:
        item, self._item = self._item, ""
        values = self._values
        location, date = _first(values, _LOCATIONS), _first(values, _DATES)
        if item == "sitemap":
            self._findings.link(location, date)
        else:
            priority, frequency = values.get("priority", ""), values.get("changefreq", "")
            self._findings.entry(location, date, priority, frequency, tuple(self._alternates))


def _by_name(attributes: list[str]) -> dict[str, str]:
    return dict(zip(attributes[::2], attributes[1::2], strict=True))


def _first(values: dict[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := values.get(name))), "")
