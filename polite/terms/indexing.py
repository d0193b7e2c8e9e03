"""Indexing: what Robots-Tag and X-Robots-Tag headers and robots meta elements say about a page."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import IntEnum
from html import unescape
from itertools import chain
from typing import Any, TypeVar

from polite.http.structured_fields import BareItem, Date, InnerList, Malformed, parse_list
from polite.robots.agent import UserAgent

# Octets, or characters, of a page that are read: the head of any honest page is well within.
HTML_LIMIT = 131_072

# HTML, 13.2.5: what the tokenizer takes as one piece, or the rest of a page that ends inside a piece. Each alternative consumes
# what it starts with, so a page is read once. Quotes hide a > in a value only, after an equals sign.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>"'][^ \t\n\f\r>]*+)"""
_NAME = r"=?+[^ \t\n\f\r/>=]++"
_ATTRIBUTE = rf"{_NAME}(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+{_VALUE}?)?"
_NAME_AND_VALUE = re.compile(rf"({_NAME})(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+({_VALUE})?)?")
_TAG = rf"[a-zA-Z][^ \t\n\f\r/>]*+(?:[ \t\n\f\r/]++|{_ATTRIBUTE}|=)*"
_PIECE = re.compile(
    rf"(?:[^<]++|<(?![a-zA-Z/!?]))+|<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)|</{_TAG}(?:>|\Z)|</[^>]*+(?:>|\Z)"
    rf"|<(?=(?P<name>[a-zA-Z]++))(?P<tag>{_TAG})(?P<end>>|\Z)",
    re.DOTALL,
)
_RAW_TEXT_END = {tag: re.compile(rf"</{tag}(?=[ \t\n\f\r/>])", re.IGNORECASE) for tag in ("script", "style")}
_NAME_END = frozenset(" \t\n\f\r/>")


def metas(html: bytes | str | None) -> Iterator[tuple[str, str]]:
    """Iterate over (name in lower case, content) of the meta elements that have both, in the first HTML_LIMIT octets.

    Never raises on content.
    """
    # All of them: pages of journals have an element for each reference, and the one for crawlers may come last.
    for attributes in _meta_tags(_text(html[:HTML_LIMIT]) if html else ""):
        if "content" not in attributes.lower():
            continue
        found = {"name": "", "content": ""}
        # Of an attribute given twice the first counts (HTML, 13.2.5.33).
        for name, value in reversed(_NAME_AND_VALUE.findall(attributes)):
            if len(name) in (4, 7) and (name := name.lower()) in found:
                found[name] = value
        name, content = (unescape(raw[1:-1] if raw[:1] in {'"', "'"} else raw) for raw in found.values())
        if name and content:
            yield name.strip().lower(), content


def _meta_tags(text: str) -> Iterator[str]:
    """Iterate over the attributes of meta elements.

    Skips scripts, styles, comments and cut tags.
    """
    position = 0
    while position < len(text) and (piece := _PIECE.match(text, position)):
        position = piece.end()
        tag = piece["tag"]
        if not tag or not piece["end"]:
            continue
        name = piece["name"].lower()
        if text[piece.start() + 1 + len(name)] not in _NAME_END:
            continue
        if name == "meta":
            yield tag[len(name) :]
        elif name in _RAW_TEXT_END and not tag.endswith("/"):
            end = _RAW_TEXT_END[name].search(text, position)
            position = end.start() if end else len(text)


def _text(html: bytes | str) -> str:
    """Decode a page. Names and directives are ASCII, so any encoding that keeps ASCII will do."""
    if isinstance(html, str):
        return html
    return html.decode("utf-16" if html[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8", "replace")


_MOST_DIRECTIVES = 1_000
_LONGEST_DATE = 64
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_AGENT = re.compile(r"[A-Za-z0-9_*-]{1,64}")

Limit = TypeVar("Limit", int, datetime)


class ImagePreview(IntEnum):
    """The largest allowed preview image; a smaller value is more restrictive.

    >>> min(ImagePreview.LARGE, ImagePreview.NONE).name
    'NONE'

    Attributes:
        NONE: no preview image (`none`).
        STANDARD: an image of the default size (`standard`).
        LARGE: an image as wide as the viewport (`large`).
    """

    NONE = 0
    STANDARD = 1
    LARGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """What may be done with a fetched page.

    The defaults are those of a page without directives.

        >>> from polite import indexing
        >>> page = indexing({"X-Robots-Tag": "noarchive, max-snippet: 50"})
        >>> page.index, page.archive, page.max_snippet
        (True, False, 50)

    Attributes:
        index: whether it may be in an index.
        follow: whether its links may be followed.
        archive: whether a cached copy may be shown.
        snippet: whether an excerpt may be shown.
        translate: whether a translation may be offered.
        image_index: whether its images may be indexed.
        ai: whether it may be used for AI (`noai`, a convention without a standard).
        image_ai: whether its images may be used for AI (`noimageai`).
        sitelinks_searchbox: whether a search box for the site may be shown.
        index_if_embedded: it may be indexed as a part of another page, despite `noindex`.
        unavailable_after: it must not be shown after this time, in UTC.
        max_snippet: characters of an excerpt, or None for no limit.
        max_image_preview: the largest preview image, or None for no limit.
        max_video_preview: seconds of a video preview, or None for no limit.
        unknown: other directives, as written.
    """

    index: bool = True
    follow: bool = True
    archive: bool = True
    snippet: bool = True
    translate: bool = True
    image_index: bool = True
    ai: bool = True
    image_ai: bool = True
    sitelinks_searchbox: bool = True
    index_if_embedded: bool = False
    unavailable_after: datetime | None = None
    max_snippet: int | None = None
    max_image_preview: ImagePreview | None = None
    max_video_preview: int | None = None
    unknown: tuple[str, ...] = ()

    def indexable(self, now: datetime) -> bool:
        """Return whether it may be in an index at this time. `now` must have a time zone."""
        return self.index and (self.unavailable_after is None or now < self.unavailable_after)

    def __or__(self, other: "Indexing") -> "Indexing":
        """Combine two sets of directives: the more restrictive value wins.

        `index_if_embedded` is a permission; it holds if either side has it, and may come without the noindex it belongs to.
        """
        forbidden = {name: getattr(self, name) and getattr(other, name) for name in _SWITCHES.values()}
        least: dict[str, Any] = {name: _least(getattr(self, name), getattr(other, name)) for name in _LIMITS}
        embedded = self.index_if_embedded or other.index_if_embedded
        unknown = tuple(dict.fromkeys(self.unknown + other.unknown))
        return Indexing(**forbidden, **least, index_if_embedded=embedded, unknown=unknown)


_SWITCHES = {
    "noindex": "index",
    "nofollow": "follow",
    "noarchive": "archive",
    "nosnippet": "snippet",
    "notranslate": "translate",
    "noimageindex": "image_index",
    "noai": "ai",
    "noimageai": "image_ai",
    "nositelinkssearchbox": "sitelinks_searchbox",
}
_LIMITS = ("unavailable_after", "max_snippet", "max_image_preview", "max_video_preview")
_NO_EFFECT = {"all", "index", "follow", "archive", "snippet", "translate", "imageindex", ""}
_FORBIDDEN: dict[str, Any] = dict.fromkeys(_SWITCHES.values(), False)
_ALL_FORBIDDEN = Indexing(**_FORBIDDEN)
# Stands for directives that are not read. A line end is in no directive.
_MORE = "\n"
_PLAIN = {"none", "nocache", "indexifembedded"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUED = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}


def indexing(
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    html: bytes | str | None = None,
    *,
    agent: str | UserAgent = "*",
) -> Indexing:
    """Return the directives of a response that bind an agent, from its headers and its page.

    Never raises on content. Follows the specifications of Google and Bing for robots meta elements and X-Robots-Tag
    headers, for which there is no standard, and draft-illyes-repext-03 (18 April 2026) for Robots-Tag headers. Directives for
    all crawlers apply, and those for one of the agent's names, in whichever of these they are. More than 1,000 directives
    forbid everything, as one that is not read may.

        >>> indexing(html='<meta name="robots" content="noindex">').index
        False

    Args:
        headers: a mapping or pairs; several pairs may be Robots-Tag or X-Robots-Tag.
        html: the page; its first HTML_LIMIT octets count.
        agent: the crawler; "*" is no crawler in particular.

    Raises:
        InvalidUserAgent: if the agent's header is invalid.
    """
    names = names_of(agent)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    tags = (TAG_READERS[name.lower()](value) for name, value in pairs if name.lower() in TAG_READERS)
    elements = (in_meta(name, content) for name, content in metas(html) if name in names)
    return merged(chain.from_iterable(chain(tags, elements)), names)


def names_of(agent: str | UserAgent) -> frozenset[str]:
    """Return the names under which directives address an agent. Raises InvalidUserAgent."""
    return frozenset({"*", "robots", *(() if agent == "*" else UserAgent.of(agent).tokens)})


def merged(directives: Iterable[tuple[str, str]], names: Collection[str]) -> Indexing:
    """Combine directives, pairs of addressee and text, that address one of these names."""
    all_of_them, unknown = Indexing(), dict[str, None]()
    for number, (addressee, directive) in enumerate(directives):
        if number == _MOST_DIRECTIVES or directive == _MORE:
            # Anything may be forbidden there, to anyone.
            all_of_them |= _ALL_FORBIDDEN
            break
        if addressee in names:
            read = _read(directive)
            # Collected apart: joining a thousand tuples one by one is quadratic.
            unknown.update(dict.fromkeys(read.unknown))
            all_of_them |= replace(read, unknown=()) if read.unknown else read
    return replace(all_of_them, unknown=tuple(unknown))


def in_meta(name: str, content: str) -> Iterator[tuple[str, str]]:
    """Iterate over (addressee, directive) of a meta element."""
    return ((name, each) for each in _directives(content))


def _least(one: Limit | None, other: Limit | None) -> Limit | None:
    """Return the smaller limit. None means no limit."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def in_header(value: str) -> Iterator[tuple[str, str]]:
    """Iterate over (addressee, directive) of an X-Robots-Tag: `googlebot: nofollow, otherbot: noindex`.

    A name applies until the next one, so a directive that a proxy appended applies to the last name only.
    """
    addressee = "*"
    for directive in _directives(value):
        name, colon, rest = directive.partition(":")
        if colon and name.strip().lower() not in _VALUED and _AGENT.fullmatch(name.strip()):
            addressee = name.strip().lower()
            yield addressee, rest.strip()
        else:
            yield addressee, directive


def in_robots_tag(value: str) -> Iterator[tuple[str, str]]:
    """Iterate over (addressee, directive) of a Robots-Tag: `*;nosnippet, ExampleBot;noindex`.

    It is a List of structured fields (RFC 9651), whose Items name crawlers and whose Parameters are directives. The draft has
    directives in any case, so capital letters do not void a line. RFC 9651 voids any other line that is malformed; here what can
    be told of it counts, since every directive restricts.
    """
    cut = len(value) > HTML_LIMIT
    value = value[:HTML_LIMIT]
    for text in (value, value.lower()):
        try:
            members = parse_list(text)
        except Malformed:
            continue
        for member in members:
            items = member.items if isinstance(member, InnerList) else (member,)
            for item in items:
                if not isinstance(item.value, str):
                    continue
                parameters = {**item.parameters, **member.parameters}
                yield from _of_item(item.value, [_directive(*each) for each in parameters.items()])
        break
    else:
        for text in value.split(","):
            name, *pieces = text.split(";")
            if pieces:
                # What can be told of a Parameter in a line that is malformed.
                parts = (piece.partition("=") for piece in pieces)
                read = [
                    _directive(key.strip().lower(), value.strip(' \t"') if equals else True)
                    for key, equals, value in parts
                ]
                yield from _of_item(name.strip(' \t"'), read)
            else:
                yield from in_header(name)
    if cut:
        yield "*", _MORE


def _of_item(name: str, directives: Collection[str]) -> Iterator[tuple[str, str]]:
    """Iterate over (addressee, directive) of one member of a Robots-Tag."""
    addressee = name.lower()
    if not directives and (":" in name or addressee in _SWITCHES or addressee in _PLAIN):
        # X-Robots-Tag's syntax under the new name.
        yield from in_header(name)
    for each in directives:
        yield addressee, each


def _directive(name: str, value: BareItem) -> str:
    """Return a Parameter as X-Robots-Tag would have it; "" for one that is false."""
    if value is False:
        return ""
    if value is True or name in _SWITCHES or name in _PLAIN:
        return name
    if isinstance(value, Date):
        try:
            value = (_EPOCH + timedelta(seconds=value)).isoformat()
        except OverflowError:
            value = f"@{value:d}"
    return f"{name}: {value!s}"


TAG_READERS = {"robots-tag": in_robots_tag, "x-robots-tag": in_header}
"""The header fields that hold directives, in lower case, and what reads a line of each."""


def _directives(value: str) -> Iterator[str]:
    """Split at commas, but not at the comma of a date such as `Fri, 25 Jun 2010`.

    The last is `_MORE` if there are more than are read.
    """
    *pieces, rest = value[:HTML_LIMIT].split(",", _MOST_DIRECTIVES)
    cut = len(pieces) == _MOST_DIRECTIVES or len(value) > HTML_LIMIT
    if not cut:
        pieces.append(rest)
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        position += 1
        if "unavailable_after" in piece.lower() and _date(_after_colon(piece)) is None:
            whole = ",".join((piece, *pieces[position : position + 1]))
            if _date(_after_colon(whole)) is not None:
                piece = whole
                position += 1
        yield piece.strip()
    if cut:
        yield _MORE


def _after_colon(text: str) -> str:
    """Return the value of `unavailable_after:`. A name may precede the field."""
    return text[text.lower().index("unavailable_after") :].partition(":")[2].strip()


def _read(directive: str) -> Indexing:
    name, colon, value = (part.strip() for part in directive.partition(":"))
    name = name.lower()
    if not colon:
        return _read_plain(name, directive)
    limit: Any = None
    match name:
        case "unavailable_after":
            limit = _date(value)
        case "max-image-preview":
            limit = ImagePreview.__members__.get(value.upper())
        case "max-snippet" | "max-video-preview":
            limit = int(value) if _NUMBER.fullmatch(value) else None
            if limit == -1:  # explicitly no limit
                return Indexing()
    if limit is None or (isinstance(limit, int) and limit < 0):
        return Indexing(unknown=(directive,))
    return Indexing(**{name.replace("-", "_"): limit})


def _read_plain(name: str, directive: str) -> Indexing:
    if name == "none":
        return Indexing(index=False, follow=False)
    if name == "nocache":  # Bing's name for it
        name = "noarchive"
    change: dict[str, Any] = {}
    if name in _SWITCHES:
        change[_SWITCHES[name]] = False
    elif name == "indexifembedded":
        change["index_if_embedded"] = True
    elif name not in _NO_EFFECT:
        change["unknown"] = (directive,)
    return Indexing(**change)


def _date(text: str) -> datetime | None:
    """Parse RFC 822, RFC 850 or ISO 8601. A date without time zone is in UTC."""
    if len(text) > _LONGEST_DATE:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
