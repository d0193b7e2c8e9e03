"""usage: all that a site says of the use of one page, in robots.txt, headers, the page and its TDM file, as one value."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from polite.errors import InvalidOption, InvalidURL, redact_url
from polite.http.header_fields import Fields, Headers, selected, text_of
from polite.origin import Target
from polite.robots import signals
from polite.robots.agent import UserAgent
from polite.robots.parse import Robots
from polite.terms.indexing import TAG_READERS, in_meta, merged, metas, names_of
from polite.terms.licenses import License, LicenseChallenge, challenge_in, linked
from polite.terms.tdm import Reservation, TdmFile, reservation_in

_SHOWN = 200


class UsageSource(Enum):
    """Where a statement was found.

    >>> UsageSource.ROBOTS.value
    'robots.txt'

    Attributes:
        ROBOTS: robots.txt.
        HEADER: a header field of the page's response.
        META: a meta element of the page.
        TDM_FILE: /.well-known/tdmrep.json (TDM Reservation Protocol).
    """

    ROBOTS = "robots.txt"
    HEADER = "response header"
    META = "meta element"
    TDM_FILE = "/.well-known/tdmrep.json"

    __hash__: Callable[..., int] = object.__hash__


class UsageStatement(NamedTuple):
    """One statement about one use.

        >>> from polite import usage
        >>> statement, = usage({"Content-Usage": "train-ai=n"}, None, "ExampleBot", "/a").statements
        >>> statement.use, statement.allowed, statement.source.value
        ('ai-train', False, 'response header')

    Attributes:
        use: the use, such as "ai-train"; the label of another vocabulary for it is in `text`.
        allowed: whether the use is allowed or refused.
        source: where it was found.
        text: the line, header or rule that states it, at most 200 characters.
        line: the line of robots.txt, or the rule of the TDM file, 1-based; None for headers and meta elements, and for a file
            that could not be read.
        careful: it is no valid statement, but can only mean a refusal. Nothing is allowed so.
    """

    use: str
    allowed: bool
    source: UsageSource
    text: str
    line: int | None = None
    careful: bool = False

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "refused"
        unit = "rule" if self.source is UsageSource.TDM_FILE else "line"
        number = f", {unit} {self.line}" if self.line else ""
        doubt = ", which is no valid statement" if self.careful else ""
        return f"{self.use}: {verdict} by {redact_url(self.text)} ({self.source.value}{number}){doubt}"


SEARCH, AI_INPUT, AI_TRAIN = STANDARD = ("search", "ai-input", "ai-train")
# Images of a page (noimageai), and text and data mining (TDMRep): labels of ours for what no vocabulary names.
IMAGE_AI, TDM = "image-ai", "tdm"
# Labels of draft-ietf-aipref-vocab-08 (13 September 2026) for the uses that Content-Signal names first.
_SAME = {"train-ai": AI_TRAIN, "ai-use": AI_INPUT}
# What a refusal covers beside its own label: earlier versions of the vocabulary had wider categories, and other names.
_COVERED: Mapping[str, tuple[str, ...]] = {
    "bots": STANDARD,
    "all": STANDARD,
    "ai": (AI_INPUT, AI_TRAIN),
    "ai-output": (AI_INPUT,),
    "genai": (AI_TRAIN,),
    "train-genai": (AI_TRAIN,),
    TDM: (AI_INPUT, AI_TRAIN),
}
# Uses with other labels, beyond which others are dropped.
_MOST_OTHERS = 1_000
_NEVER_DROPPED = frozenset({*STANDARD, IMAGE_AI, TDM})


def use_of(label: str) -> str:
    """Return the use that a label names: `train-ai` is "ai-train". An unknown label is its own use."""
    return _SAME.get(label, label)


def statements(
    labels: Iterable[tuple[str, bool, bool]], source: UsageSource, text: str, line: int | None = None
) -> Iterator[UsageStatement]:
    """Iterate over the statements of one line.

    Args:
        labels: for each label whether it is allowed, and whether that is read with care.
    """
    text = text[:_SHOWN]
    for label, allowed, careful in labels:
        yield UsageStatement(use_of(label), allowed, source, text, line, careful)
        for use in () if allowed else _COVERED.get(label, ()):
            yield UsageStatement(use, False, source, text, line, careful)  # noqa: FBT003
        # `ai_train=no` is a label of no vocabulary, and can only mean one of these.
        if not allowed and "_" in label and (use := use_of(label.replace("_", "-"))) in STANDARD:
            yield UsageStatement(use, False, source, text, line, careful=True)  # noqa: FBT003


def by_use(found: Iterable[UsageStatement]) -> dict[str, tuple[UsageStatement, ...]]:
    """Group statements by use: refused uses first, and of each use refusals first.

    Of a use, the first statement of a verdict in each field of each source is kept.
    """
    kept: dict[str, dict[tuple[bool, UsageSource, str], UsageStatement]] = {}
    others = 0
    for each in found:
        if each.use not in kept:
            is_other = each.use not in _NEVER_DROPPED
            others += is_other
            if is_other and others > _MOST_OTHERS:
                continue
        field = each.text.partition(":")[0]
        kept.setdefault(each.use, {}).setdefault((each.allowed, each.source, field), each)
    strictness = attrgetter("allowed", "careful")
    sorted_by_use = {use: tuple(sorted(each.values(), key=strictness)) for use, each in kept.items()}
    return dict(sorted(sorted_by_use.items(), key=lambda item: item[1][0].allowed))


# Characters that are read of one header, in all its lines: twice what HTTP clients accept. A line counts as 16 at least.
_LONGEST = 16_384
_LINE_COUNTS_AS = 16
_HEADERS = frozenset(
    {
        *("content-usage", "content-signal", "robots-tag", "x-robots-tag", "content-type"),
        *("link", "www-authenticate", "tdm-reservation", "tdm-policy"),
    }
)
_MENTIONS_AI = re.compile("no(?:image)?ai", re.IGNORECASE).search
# What some sites write between directives instead of a comma.
_BETWEEN = re.compile(r"[\s;|]+")
_NO_VALUES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a site says of the use of one page. `str()` of it is a line for each statement.

    A single refusal is enough (draft-ietf-aipref-vocab-08, 5.1). Nothing here permits a fetch.

        >>> from polite import parse, usage
        >>> robots = parse("User-agent: *\\nContent-Signal: search=yes, ai-train=yes")
        >>> page = usage({"Content-Usage": "train-ai=n"}, robots, "ExampleBot", "https://example.com/a")
        >>> page.search, page.ai_input, page.ai_train, page.refused
        (True, None, False, ('ai-train',))
        >>> print(page.statements[0])
        ai-train: refused by Content-Usage: train-ai=n (response header)

    Attributes:
        by_use: the statements of each use, the strictest first; refused uses come first. A missing use means that nothing was
            said.
        values: the other keys of Content-Signal, in lower case, such as `{"use": "reference"}`; of `use` the strictest.
        licenses: the licences that apply to the page (RSL 1.0).
        challenge: the licence that the response demands, or None.
        tdm_policy: the URL of the policy under which reserved rights may be had (TDMRep, 5.2), or None.
    """

    by_use: Mapping[str, tuple[UsageStatement, ...]]
    values: Mapping[str, str] = field(default_factory=lambda: _NO_VALUES)
    licenses: tuple[License, ...] = ()
    challenge: LicenseChallenge | None = None
    tdm_policy: str | None = None

    def allows(self, use: str) -> bool | None:
        """Return whether a use is allowed; None if nothing is said. "train-ai" and "ai-train" are the same use."""
        said = self.by_use.get(use_of(use))
        return None if said is None else said[0].allowed

    def because(self, use: str) -> tuple[UsageStatement, ...]:
        """Return the statements about a use, the strictest first."""
        return self.by_use.get(use_of(use), ())

    @property
    def statements(self) -> tuple[UsageStatement, ...]:
        """All statements, those about refused uses first."""
        return tuple(chain.from_iterable(self.by_use.values()))

    @property
    def refused(self) -> tuple[str, ...]:
        """The uses that are refused."""
        return tuple(use for use, said in self.by_use.items() if not said[0].allowed)

    @property
    def search(self) -> bool | None:
        """Whether the page may be in a search index with a link to it; None if nothing is said."""
        return self.allows(SEARCH)

    @property
    def ai_input(self) -> bool | None:
        """Whether the page may be input of a model that generates an answer (`ai-use` of the IETF's drafts)."""
        return self.allows(AI_INPUT)

    @property
    def ai_train(self) -> bool | None:
        """Whether models may be trained with the page (`train-ai` of the IETF's drafts)."""
        return self.allows(AI_TRAIN)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements)) or "nothing is said about the use of the page"

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled.
        rest = {"licenses": self.licenses, "challenge": self.challenge, "tdm_policy": self.tdm_policy}
        return _restored, (dict(self.by_use), dict(self.values), rest)


def _restored(by_use: dict[str, Any], values: dict[str, str], rest: dict[str, Any]) -> Usage:
    return Usage(by_use=MappingProxyType(by_use), values=MappingProxyType(values), **rest)


def usage(
    response_headers: Headers,
    robots: Robots | None,
    agent: str | UserAgent,
    url: str,
    *,
    html: bytes | str | None = None,
    tdm_file: TdmFile | None = None,
) -> Usage:
    """Return what a site says of the use of a page, combined: a refusal of any source wins. Never raises on content.

        >>> from polite import usage
        >>> usage({"TDM-Reservation": "1"}, None, "ExampleBot", "https://example.com/a").refused
        ('tdm', 'ai-input', 'ai-train')

    Sources, each a draft or a convention that may change:
        Content-Usage of robots.txt and of the response: draft-ietf-aipref-attach-05 (19 August 2026).
        Content-Signal of both: Content Signals policy (24 September 2025; `use` since 1 July 2026).
        Robots-Tag, X-Robots-Tag and robots meta elements with `noai` or `noimageai`: not standardised.
        tdm-reservation and tdm-policy: TDMRep (10 May 2024). The page replaces the headers, and these the file (6.4).
        License lines, Link and WWW-Authenticate: RSL 1.0 (November 2025). A licence neither allows nor refuses a use here.

    A Content-Usage that RFC 9651 voids permits nothing, but the refusals that can be told count, marked `careful`. So does
    `train-ai=no`, and a refusal above the first group of robots.txt if the agent's group says nothing. A header that is too
    long to be read refuses, in the same way, each use that it could refuse.

    Args:
        response_headers: of the page: a mapping or pairs, or () before it was fetched. Of a header 16,384 characters are read, in
            at most 1,024 lines.
        robots: the site's robots.txt, or None if it has none.
        agent: the crawler.
        url: the page's URL, or its path.
        html: the page; its first HTML_LIMIT octets count.
        tdm_file: what `Gate.tdm_file` returned for the site.

    Raises:
        InvalidURL: if the URL names no host.
        InvalidUserAgent: if the agent's header is invalid.
        InvalidOption: if the headers are neither a mapping nor pairs, or robots is a text or a response.
    """
    odd: object = robots
    if odd is not None and not isinstance(odd, Robots):
        kind = type(odd).__name__
        raise InvalidOption(f"robots must be what polite.parse or Gate.robots returned, or None, got {kind}")
    page = None if url[:1] == "/" else Target.of(url)
    path = url if page is None else page.path
    agent = UserAgent.of(agent)
    headers = _Headers(selected(response_headers, _HEADERS))
    elements = list(dict.fromkeys(metas(html)))
    bound = None if robots is None else robots.signals_for(agent)
    lines = [] if bound is None else bound.read_with_care(path)
    tdm, policy = _tdm(headers, elements, path, tdm_file)
    preferences, tags = _of_preferences(headers), _of_robots_tags(headers, elements, names_of(agent))
    found = chain(chain.from_iterable(map(_of_line, lines)), preferences, tags, tdm)
    values = chain((line.values for line in lines), map(signals.read_values, headers.lines("content-signal")))
    return Usage(
        by_use=MappingProxyType(by_use(found)),
        values=MappingProxyType(signals.strictest_values(values)),
        licenses=tuple(_licenses(bound, headers, page)),
        challenge=challenge_in(headers.lines("www-authenticate")),
        tdm_policy=None if policy is None else _absolute(policy, page),
    )


class _Headers:
    """The headers of a response, each cut at a number of characters."""

    def __init__(self, fields: Fields) -> None:
        self._lines: dict[str, list[str]] = {}
        self._left = dict.fromkeys(_HEADERS, _LONGEST)
        self.cut: set[str] = set()
        for name, value in fields:
            text, left = text_of(value), self._left[name]
            if len(text) > left or left <= 0:
                self.cut.add(name)
            if left > 0:
                self._lines.setdefault(name, []).append(text[:left])
                self._left[name] -= max(_LINE_COUNTS_AS, len(text))

    def lines(self, name: str) -> list[str]:
        return self._lines.get(name, [])


def _of_line(line: signals.Statement) -> Iterator[UsageStatement]:
    """Return what a line of robots.txt states."""
    labels = [(label, allowed, False) for label, allowed in line.says.items()]
    labels += [(label, False, True) for label in line.refuses]
    return statements(labels, UsageSource.ROBOTS, f"{_WRITTEN[line.field]}: {line.text}", line.line)


_TAGS = {"robots-tag": "Robots-Tag", "x-robots-tag": "X-Robots-Tag"}
_WRITTEN = {"content-usage": "Content-Usage", "content-signal": "Content-Signal"}


def _of_preferences(headers: _Headers) -> Iterator[UsageStatement]:
    """Return what Content-Usage and Content-Signal headers state. Each line of a header is a statement of its own."""
    for name, written in _WRITTEN.items():
        lines = headers.lines(name)
        # One malformed line voids all lines of the field (RFC 9651, 4.2).
        void = name in headers.cut or (name == "content-usage" and None in map(signals.members_of, lines))
        read = signals.read_usage if name == "content-usage" else signals.read_signal
        for text in lines:
            said = read(text)
            labels = [(label, yes, void) for label, yes in said.items() if not (yes and void)]
            labels += [(label, False, True) for label in signals.refusals(name, text, said)]
            yield from statements(labels, UsageSource.HEADER, f"{written}: {text}")
        yield from _unread(headers, name, written, STANDARD)


def _unread(headers: _Headers, name: str, written: str, uses: Iterable[str]) -> Iterator[UsageStatement]:
    """Return the refusals that may be in a part of a header that is not read."""
    if name in headers.cut:
        labels = ((use, False, True) for use in uses)
        yield from statements(labels, UsageSource.HEADER, f"{written}: longer than is read")


def _of_robots_tags(
    headers: _Headers, elements: Iterable[tuple[str, str]], names: frozenset[str]
) -> Iterator[UsageStatement]:
    """Return what noai and noimageai refuse. The latter refuses an image itself, too."""
    is_image = any(kind.strip().lower().startswith("image/") for kind in headers.lines("content-type"))
    found = chain(
        (
            (UsageSource.HEADER, f"{written}: {text}", TAG_READERS[name](text))
            for name, written in _TAGS.items()
            for text in headers.lines(name)
        ),
        (
            (UsageSource.META, f"{name}: {content}", in_meta(name, content))
            for name, content in elements
            if name in names
        ),
    )
    for source, text, directives in found:
        if not _MENTIONS_AI(text):  # for nearly every directive
            continue
        said = merged(directives, names)
        refused = _refused_by(said.ai, said.image_ai, is_image=is_image)
        told = {word for each in said.unknown for word in _BETWEEN.split(each.lower())}
        doubtful = _refused_by("noai" not in told, "noimageai" not in told, is_image=is_image)
        labels = [(label, False, False) for label in refused]
        labels += [(label, False, True) for label in doubtful if label not in refused]
        yield from statements(labels, source, text)
    for name, written in _TAGS.items():
        yield from _unread(headers, name, written, (AI_INPUT, AI_TRAIN, IMAGE_AI))


def _refused_by(ai: bool, image_ai: bool, *, is_image: bool) -> list[str]:  # noqa: FBT001 - as in Indexing
    refused = [] if ai and (image_ai or not is_image) else [AI_INPUT, AI_TRAIN]
    return refused + ([] if image_ai and ai else [IMAGE_AI])


def _tdm(
    headers: _Headers, elements: Iterable[tuple[str, str]], path: str, file: TdmFile | None
) -> tuple[Iterator[UsageStatement], str | None]:
    """Return what TDMRep states, and the policy: by the page, else by the headers, else by the file (6.4)."""
    reserving = [content for name, content in elements if name == "tdm-reservation"]
    rule = None if file is None else file.at(path)
    policies = [content for name, content in elements if name == "tdm-policy"] + headers.lines("tdm-policy")
    policy = next((text.strip() for text in policies if text.strip()), rule.policy if rule else None)
    for source, values in (
        (UsageSource.META, reserving),
        (UsageSource.HEADER, headers.lines("tdm-reservation")),
    ):
        reservation = reservation_in(values)
        if source is UsageSource.HEADER and "tdm-reservation" in headers.cut:
            reservation = Reservation(True, careful=True)  # noqa: FBT003
        if reservation:
            found = _reserved(reservation, source, f"tdm-reservation: {', '.join(values)}")
            return found, policy if reservation.reserved else None
    if file is None or rule is None:
        return iter(()), None
    text = str(rule) if rule.number else f"a file with a problem: {file.problem}"
    reservation = Reservation(rule.reserved, rule.careful)
    found = _reserved(reservation, UsageSource.TDM_FILE, text, rule.number or None)
    return found, policy if rule.reserved else None


def _reserved(
    reservation: Reservation, source: UsageSource, text: str, line: int | None = None
) -> Iterator[UsageStatement]:
    return statements(((TDM, not reservation.reserved, reservation.careful),), source, text, line)


def _licenses(bound: signals.SignalSet | None, headers: _Headers, page: Target | None) -> Iterator[License]:
    """Yield the licences that robots.txt and Link headers name."""
    if bound is not None:
        yield from (License(link, line) for line, link in bound.licenses)
    yield from (License(_absolute(link, page)) for link in linked(headers.lines("link")))


def _absolute(reference: str, page: Target | None) -> str:
    """Return the URL of a reference that was found in a page, or the reference as written."""
    try:
        return (Target.of(reference) if page is None else page.join(reference)).url
    except InvalidURL:
        return reference
