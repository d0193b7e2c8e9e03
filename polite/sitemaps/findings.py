"""Findings: the entries and links of one file, checked and counted."""

import re

from polite.errors import InvalidURL
from polite.origin import Target
from polite.sitemaps.dates import NO_DATE, parse_date
from polite.sitemaps.entry import Alternate, ChangeFrequency, SitemapEntry, SitemapKind, SitemapLink
from polite.sitemaps.policy import SitemapPolicy
from polite.sitemaps.problem import beyond

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
        url = self.url(reference)
        if url is None:
            self.skipped += 1
            return
        self._count()
        date, span = parse_date(lastmod) if lastmod else NO_DATE
        frequency = _FREQUENCIES.get(changefreq.lower())
        self._found.append(
            SitemapEntry(url, date, span, _priority(priority), frequency, alternates, self._sitemap)
        )

    def link(self, reference: str, lastmod: str = "") -> None:
        """Add a sitemap. Raises SitemapEnded at the limit."""
        url = self.url(reference)
        if url is None:
            self.skipped += 1
            return
        self._count()
        date, span = parse_date(lastmod) if lastmod else NO_DATE
        self._found.append(SitemapLink(url, date, span, self._sitemap))

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

    def _count(self) -> None:
        if self.entries == self._most:
            raise beyond("max_entries", self._most, "entries")
        self.entries += 1


def _priority(text: str) -> float | None:
    if not text or text == "." or not _PRIORITY.fullmatch(text):
        return None
    value = float(text)
    return value if value <= 1.0 else None


def _word(text: str | None) -> str | None:
    return text.strip()[:_LONGEST_WORD] or None if text else None
