"""Indexing: what X-Robots-Tag headers and robots meta elements ask of whoever keeps or shows a page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import IntEnum
from html import unescape
from itertools import chain, islice
from typing import Any, TypeVar

from polite.robots.agent import UserAgent

# Octets, or characters, of a page that are looked at: the head of any honest page is well within.
HTML_LIMIT = 131_072
_HEADER = "x-robots-tag"
_MOST_DIRECTIVES = 1_000
_LONGEST_DATE = 64
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_AGENT = re.compile(r"[A-Za-z0-9_*-]{1,64}")

Limit = TypeVar("Limit", int, datetime)


class ImagePreview(IntEnum):
    """How large a preview image may be; the smaller is the more restrictive."""

    NONE = 0
    STANDARD = 1
    LARGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """What may be done with a page once it has been fetched. The defaults are those of a page that asks for nothing.

    `unavailable_after`: from then on it is not to be shown; in UTC. `max_snippet`: characters; `max_video_preview`: seconds;
    None is no limit. `index_if_embedded`: despite `noindex`, as part of another page. `unknown`: other directives, as written.
    """

    index: bool = True
    follow: bool = True
    archive: bool = True
    snippet: bool = True
    translate: bool = True
    image_index: bool = True
    sitelinks_searchbox: bool = True
    index_if_embedded: bool = False
    unavailable_after: datetime | None = None
    max_snippet: int | None = None
    max_image_preview: ImagePreview | None = None
    max_video_preview: int | None = None
    unknown: tuple[str, ...] = ()

    def indexable(self, now: datetime) -> bool:
        """Whether it may be in an index at that time, which has a time zone."""
        return self.index and (self.unavailable_after is None or now < self.unavailable_after)

    def __or__(self, other: "Indexing") -> "Indexing":
        """Both together: the more restrictive wins. `index_if_embedded` is a permission, and may stand apart from its noindex."""
        forbidden = {name: getattr(self, name) and getattr(other, name) for name in _SWITCHES.values()}
        least: dict[str, Any] = {name: _least(getattr(self, name), getattr(other, name)) for name in _LIMITS}
        return Indexing(
            **forbidden,
            **least,
            index_if_embedded=self.index_if_embedded or other.index_if_embedded,
            unknown=tuple(dict.fromkeys(self.unknown + other.unknown)),
        )


_SWITCHES = {
    "noindex": "index",
    "nofollow": "follow",
    "noarchive": "archive",
    "nosnippet": "snippet",
    "notranslate": "translate",
    "noimageindex": "image_index",
    "nositelinkssearchbox": "sitelinks_searchbox",
}
_LIMITS = ("unavailable_after", "max_snippet", "max_image_preview", "max_video_preview")
_SAYING_NOTHING = {"all", "index", "follow", "archive", "snippet", "translate", "imageindex", ""}
_VALUED = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}


def indexing(
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    html: bytes | str | None = None,
    *,
    agent: str | UserAgent = "*",
) -> Indexing:
    """What a response asks of an agent, by its headers and its page. Never raises on content.

    `headers`: a mapping or pairs, of which several may be X-Robots-Tag. `html`: its first HTML_LIMIT octets count. What is said to
    everybody holds, and what is said to one of the agent's names too; "*" is nobody in particular. Raises InvalidUserAgent.

    By the specifications of Google and Bing for robots meta elements and X-Robots-Tag headers; there is no standard.
    """
    names = {"*", "robots", *(() if agent == "*" else UserAgent.of(agent).tokens)}
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    said = chain(
        (each for name, value in pairs if name.lower() == _HEADER for each in _scoped(value)),
        ((name, each) for name, content in _metas(html) if name in names for each in _directives(content)),
    )
    asked, unknown = Indexing(), dict[str, None]()
    for addressee, directive in islice(said, _MOST_DIRECTIVES):
        if addressee in names:
            read = _read(directive)
            # Apart: to join a thousand of them one by one takes a thousand times as long as to read them.
            unknown.update(dict.fromkeys(read.unknown))
            asked |= replace(read, unknown=()) if read.unknown else read
    return replace(asked, unknown=tuple(unknown))


def _least(one: Limit | None, other: Limit | None) -> Limit | None:
    """The smaller limit; None is none."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _scoped(value: str) -> Iterator[tuple[str, str]]:
    """A header's directives, each with whom it is said to: `googlebot: nofollow, otherbot: noindex`.

    A name holds until the next one, so a proxy that joins headers into one makes a directive the last name's.
    """
    addressee = "*"
    for directive in _directives(value):
        name, colon, rest = directive.partition(":")
        if colon and name.strip().lower() not in _VALUED and _AGENT.fullmatch(name.strip()):
            addressee = name.strip().lower()
            yield addressee, rest.strip()
        else:
            yield addressee, directive


def _directives(value: str) -> Iterator[str]:
    """What stands between commas; the comma of a date, as in `Fri, 25 Jun 2010`, parts nothing."""
    pieces = value[:HTML_LIMIT].split(",", _MOST_DIRECTIVES)[:_MOST_DIRECTIVES]
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


def _after_colon(text: str) -> str:
    """The value of `unavailable_after:`, before which a name may stand."""
    return text[text.lower().index("unavailable_after") :].partition(":")[2].strip()


def _read(directive: str) -> Indexing:
    """One directive alone."""
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
            if limit == -1:  # said in so many words: no limit
                return Indexing()
    if limit is None or (isinstance(limit, int) and limit < 0):
        return Indexing(unknown=(directive,))
    return Indexing(**{name.replace("-", "_"): limit})


def _read_plain(name: str, directive: str) -> Indexing:
    if name == "none":
        return Indexing(index=False, follow=False)
    if name == "nocache":  # what Bing calls it
        name = "noarchive"
    change: dict[str, Any] = {}
    if name in _SWITCHES:
        change[_SWITCHES[name]] = False
    elif name == "indexifembedded":
        change["index_if_embedded"] = True
    elif name not in _SAYING_NOTHING:
        change["unknown"] = (directive,)
    return Indexing(**change)


def _date(text: str) -> datetime | None:
    """RFC 822, RFC 850 or ISO 8601; without a time zone it is UTC."""
    if len(text) > _LONGEST_DATE:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


# HTML, 13.2.5: what the tokenizer takes as one piece, or the rest of a page that ends in it. Each alternative takes what it
# starts with, so that a page is gone through once. Quotes hide a > in a value only, behind an equals sign.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>"'][^ \t\n\f\r>]*+)"""
_NAME = r"=?+[^ \t\n\f\r/>=]++"
_ATTRIBUTE = rf"{_NAME}(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+{_VALUE}?+)?+"
_NAME_AND_VALUE = re.compile(rf"({_NAME})(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+({_VALUE})?+)?+")
_TAG = rf"[a-zA-Z][^ \t\n\f\r/>]*+(?:[ \t\n\f\r/]++|{_ATTRIBUTE}|=)*+"
_PIECE = re.compile(
    rf"(?:[^<]|<(?![a-zA-Z/!?]))++|<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)|</{_TAG}(?:>|\Z)|</[^>]*+(?:>|\Z)"
    rf"|<(?=(?P<name>[a-zA-Z]++))(?P<tag>{_TAG})(?P<end>>|\Z)",
    re.DOTALL,
)
_RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in ("script", "style")
}
_NAME_END = frozenset(" \t\n\f\r/>")


def _metas(html: bytes | str | None) -> Iterator[tuple[str, str]]:
    """The meta elements of a page that have both: name in lower case, and content."""
    for attributes in islice(_meta_tags(_text(html[:HTML_LIMIT]) if html else ""), _MOST_DIRECTIVES):
        found = {"name": "", "content": ""}
        # Of an attribute given twice the first counts (HTML, 13.2.5.33).
        for name, value in reversed(_NAME_AND_VALUE.findall(attributes)):
            if len(name) in (4, 7) and (name := name.lower()) in found:
                found[name] = value
        name, content = (
            unescape(value[1:-1] if value[:1] in {'"', "'"} else value) for value in found.values()
        )
        if name and content:
            yield name.strip().lower(), content


def _meta_tags(text: str) -> Iterator[str]:
    """The attributes of meta elements. Scripts, styles and comments are passed over; what is cut short says nothing."""
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
    """Names and directives are ASCII: any encoding does that leaves them as they are."""
    if isinstance(html, str):
        return html
    return html.decode("utf-16" if html[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8", "replace")
