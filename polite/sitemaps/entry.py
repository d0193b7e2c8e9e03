"""What a sitemap names: entries, links to other sitemaps, and what became of a file."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from polite.sitemaps.dates import changed_since

_NO_TIME = timedelta(0)


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
class SitemapEntry:
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

    url: str
    lastmod: datetime | None = None
    lastmod_span: timedelta = _NO_TIME
    priority: float | None = None
    changefreq: ChangeFrequency | None = None
    alternates: tuple[Alternate, ...] = ()
    sitemap: str = ""

    def changed_since(self, since: datetime) -> bool:
        """Return whether the page may have changed after `since`. Only a `lastmod` says that it did not."""
        return changed_since(self.lastmod, self.lastmod_span, since)


@dataclass(frozen=True, slots=True)
class SitemapLink:
    """A sitemap that an index names.

    Attributes:
        url: The URL, canonical.
        lastmod: When the file was changed last, as in SitemapEntry.
        lastmod_span: How much time `lastmod` covers.
        sitemap: The URL of the index.
    """

    url: str
    lastmod: datetime | None = None
    lastmod_span: timedelta = _NO_TIME
    sitemap: str = ""

    def changed_since(self, since: datetime) -> bool:
        """Return whether the file may have changed after `since`. Only a `lastmod` says that it did not."""
        return changed_since(self.lastmod, self.lastmod_span, since)


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
