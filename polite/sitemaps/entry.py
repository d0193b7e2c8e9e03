"""What a sitemap names: entries, links to other sitemaps, and what became of a file."""

import re
from calendar import isleap, monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from enum import Enum

from polite.errors import InvalidURL
from polite.options import boolean, integer, number
from polite.origin import Target

# https://www.w3.org/TR/NOTE-datetime. Real files leave out the time zone or its colon, and write a space for the T.
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[Tt ](\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)? ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST = 64
_NO_TIME = timedelta(0)

Date = tuple[datetime | None, timedelta]
# What is no date.
NO_DATE: Date = (None, _NO_TIME)


def parse_date(text: str) -> Date:
    """Return the first moment of a date, and how much time it covers; None and nothing if it is no date.

    >>> parse_date("2026-05")
    (datetime.datetime(2026, 5, 1, 0, 0, tzinfo=datetime.timezone.utc), datetime.timedelta(days=31))
    """
    if not text or len(text) > _LONGEST:
        return NO_DATE
    try:
        if found := _W3C.fullmatch(text):
            return _w3c_date(found)
        date = parsedate_to_datetime(text)
        return date if date.tzinfo else date.replace(tzinfo=UTC), _NO_TIME
    except (ValueError, OverflowError, IndexError, TypeError):
        # The last two: what `email.utils` raises on some input (RFC 5322 allows comments and much else).
        return NO_DATE


def _w3c_date(found: re.Match[str]) -> Date:
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    begin = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if hour is None:
        days = 1 if day else monthrange(begin.year, begin.month)[1] if month else 365 + isleap(begin.year)
        return begin, timedelta(days)
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    moment = begin.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micro)
    if zone is not None and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        moment = moment.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))
    return moment, _NO_TIME if second else timedelta(minutes=1)


class SitemapEnded(Exception):
    """A file is not read further. What came before counts."""


def beyond(option: str, limit: int, what: str) -> SitemapEnded:
    """Return the end of a file that exceeds a limit of the policy."""
    return SitemapEnded(f"more than SitemapPolicy.{option}={limit} {what}")


# What the protocol permits one file to have (https://www.sitemaps.org/protocol.html): 50 MiB decoded, 50,000 entries.
BYTES = 50 * 1024 * 1024
ENTRIES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapPolicy:
    """Limits on sitemaps. A file that exceeds one keeps what came before.

        >>> SitemapPolicy(max_files=10).max_entries
        50000

    Attributes:
        max_bytes: octets of a file, before and after it is decompressed.
        max_entries: entries or links of a file.
        max_files: files of a site, those included that could not be read.
        max_depth: how many indexes may lead from robots.txt to a file. The protocol has one. With 0, no index is followed.
        max_redirects: redirects of a file that are followed, each in its turn.
        timeout: seconds on the network for a file, redirects included. Waiting for a turn does not count.
        other_hosts: whether URLs of hosts other than the site's count. The protocol forbids them. `www.` makes no other host.

    Raises:
        InvalidOption: if a value is outside of its limits.
    """

    max_bytes: int = BYTES
    max_entries: int = ENTRIES
    max_files: int = 1_000
    max_depth: int = 2
    max_redirects: int = 5
    timeout: float = 60.0
    other_hosts: bool = False

    def __post_init__(self) -> None:
        integer("SitemapPolicy: max_bytes", self.max_bytes, least=1, most=1 << 32)
        integer("SitemapPolicy: max_entries", self.max_entries, least=1, most=100_000_000)
        integer("SitemapPolicy: max_files", self.max_files, least=1, most=50_000)
        integer("SitemapPolicy: max_depth", self.max_depth, least=0, most=10)
        integer("SitemapPolicy: max_redirects", self.max_redirects, least=0, most=20)
        number("SitemapPolicy: timeout", self.timeout, least=0.001, most=86_400)
        boolean("SitemapPolicy: other_hosts", self.other_hosts)


class SitemapKind(Enum):
    """The format of a sitemap.

    Attributes:
        URLSET: XML with a list of pages (sitemaps.org).
        INDEX: XML with a list of sitemaps (sitemaps.org).
        RSS: a feed in RSS 2.0.
        ATOM: a feed in Atom (RFC 4287).
        TEXT: one URL per line.
    """

    URLSET = "urlset"
    INDEX = "sitemapindex"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"


class ChangeFrequency(Enum):
    """How often a page changes, as its site says (sitemaps.org, `changefreq`).

    Attributes:
        ALWAYS: it differs each time it is requested.
        HOURLY: about once an hour.
        DAILY: about once a day.
        WEEKLY: about once a week.
        MONTHLY: about once a month.
        YEARLY: about once a year.
        NEVER: it is archived.
    """

    ALWAYS = "always"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Alternate:
    """Another version of a page (`xhtml:link rel="alternate"`).

    Attributes:
        url: The URL, canonical.
        hreflang: Its language and region, such as "de-CH" or "x-default"; None if the site does not say.
        media: The media for which it is made; None if the site does not say.
    """

    url: str
    hreflang: str | None = None
    media: str | None = None


@dataclass(frozen=True, slots=True)
class _Dated:
    url: str
    lastmod: datetime | None = None
    lastmod_span: timedelta = _NO_TIME

    def changed_since(self, since: datetime) -> bool:
        """Return whether it may have changed after `since`. Only a `lastmod` says that it did not."""
        # No sum: a date at the end of the year 9999 has none.
        return self.lastmod is None or self.lastmod > since or since - self.lastmod < self.lastmod_span


@dataclass(frozen=True, slots=True)
class SitemapEntry(_Dated):
    """A page that a sitemap names.

    >>> from datetime import UTC, datetime
    >>> entry = SitemapEntry("https://example.com/a", lastmod=datetime(2026, 5, 1, tzinfo=UTC))
    >>> entry.changed_since(datetime(2026, 4, 1, tzinfo=UTC)), entry.changed_since(datetime(2026, 6, 1, tzinfo=UTC))
    (True, False)

    Attributes:
        url: The URL, canonical.
        lastmod: When the page was changed last; the begin of the day, month or year if the site names no time. It has a time
            zone, UTC if the site names none.
        lastmod_span: How much time `lastmod` covers: a day for a date without a time.
        priority: 0.0 to 1.0, compared with other pages of the site.
        changefreq: How often the page changes.
        alternates: Its other versions, 200 at most.
        sitemap: The URL of the file that names it.
    """

    priority: float | None = None
    changefreq: ChangeFrequency | None = None
    alternates: tuple[Alternate, ...] = ()
    sitemap: str = ""


@dataclass(frozen=True, slots=True)
class SitemapLink(_Dated):
    """A sitemap that an index names.

    Attributes:
        url: The URL, canonical.
        lastmod: When the file was changed last, as in SitemapEntry.
        lastmod_span: How much time `lastmod` covers.
        sitemap: The URL of the index.
    """

    sitemap: str = ""


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """What became of one file.

    Attributes:
        url: The URL that named it.
        kind: Its format, or None if it was not read.
        entries: How many entries and links it has.
        skipped: How many more it has that are no URL of http or https, or that the walk leaves out as URLs of other hosts.
        problem: Why it was not read to its end, or at all; None if it was.
        status: The last response's status, or None without a response.
        disallowed: Whether robots.txt disallows it.
    """

    url: str
    kind: SitemapKind | None = None
    entries: int = 0
    skipped: int = 0
    problem: str | None = None
    status: int | None = None
    disallowed: bool = False


# The protocol permits 2,047 characters; real files have some more.
LONGEST_URL = 8_192
# Characters of a language, and of a media query.
_LONGEST_WORD = 200
_SCHEMES = frozenset({"http", "https"})
# A relative reference is against the protocol, but some feeds have them. "n/a" or "#" is no URL.
_REFERENCE = re.compile(r"https?:|/", re.IGNORECASE)
_PRIORITY = re.compile(r"\d{0,3}\.?\d{0,10}", re.ASCII)
_FREQUENCIES = {each.value: each for each in ChangeFrequency}

Found = SitemapEntry | SitemapLink
"""What a sitemap names: a page, or another sitemap."""


class Findings:
    """Collects what a file names.

    Attributes:
        kind: The file's format, once it is known.
        entries: How many entries and links were found.
        skipped: How many had no URL of http or https.
    """

    def __init__(self, file: Target, policy: SitemapPolicy) -> None:
        self.kind: SitemapKind | None = None
        self.entries: int = 0
        self.skipped: int = 0
        self._file = file
        self._sitemap = file.url
        self._most = policy.max_entries
        self._found: list[Found] = []

    def take(self) -> list[Found]:
        """Return what was found since the last call."""
        found, self._found = self._found, []
        return found

    def entry(
        self,
        reference: str,
        lastmod: str = "",
        priority: str = "",
        changefreq: str = "",
        alternates: tuple[Alternate, ...] = (),
    ) -> None:
        """Add a page, with its fields as written. Raises SitemapEnded at the limit."""
        if url := self._counted(reference):
            date, span = parse_date(lastmod)
            rank, frequency = _priority(priority), _FREQUENCIES.get(changefreq.lower())
            self._found.append(SitemapEntry(url, date, span, rank, frequency, alternates, self._sitemap))

    def link(self, reference: str, lastmod: str = "") -> None:
        """Add a sitemap. Raises SitemapEnded at the limit."""
        if url := self._counted(reference):
            self._found.append(SitemapLink(url, *parse_date(lastmod), self._sitemap))

    def alternate(self, reference: str, hreflang: str | None, media: str | None) -> Alternate | None:
        """Return another version of a page, or None if it has no URL."""
        url = self.url(reference)
        return None if url is None else Alternate(url, _word(hreflang), _word(media))

    def url(self, reference: str) -> str | None:
        """Return the canonical URL of http or https, or None if it is none."""
        if len(reference) > LONGEST_URL or not _REFERENCE.match(reference):
            return None
        try:
            target = self._file.join(reference)
        except InvalidURL:
            return None
        return target.url if target.origin.scheme in _SCHEMES else None

    def _counted(self, reference: str) -> str | None:
        """Return the URL of an entry or a link, and count it, or that it has none."""
        url = self.url(reference)
        if url is None:
            self.skipped += 1
        elif self.entries == self._most:
            raise beyond("max_entries", self._most, "entries")
        else:
            self.entries += 1
        return url


def _priority(text: str) -> float | None:
    if not text or text == "." or not _PRIORITY.fullmatch(text):
        return None
    value = float(text)
    return value if value <= 1.0 else None


def _word(text: str | None) -> str | None:
    return text.strip()[:_LONGEST_WORD] or None if text else None
