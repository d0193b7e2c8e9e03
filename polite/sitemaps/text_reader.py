"""TextReader: a sitemap of one URL per line."""

import codecs
import re

from polite.sitemaps.entry import SitemapKind
from polite.sitemaps.findings import LONGEST_URL, Findings
from polite.sitemaps.problem import SitemapEnded

_LINE_END = re.compile(r"[\r\n]")
_URL = re.compile(r"https?://", re.IGNORECASE)
_SURROGATES = re.compile("[\udc80-\udcff]+")
# A file without a URL in so many characters is something else, such as an image.
_PATIENCE = 65_536


class TextReader:
    """Reads lines. Those that are no URL are skipped.

    Args:
        findings: Takes the entries.
        encoding: "UTF-8", or "UTF-16LE" or "UTF-16BE".
    """

    def __init__(self, findings: Findings, encoding: str) -> None:
        self._findings = findings
        findings.kind = SitemapKind.TEXT
        errors = "surrogateescape" if encoding == "UTF-8" else "replace"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._line = ""
        self._read = 0

    def feed(self, data: bytes) -> None:
        """Read the lines of a chunk. Raises SitemapEnded."""
        text = self._decoder.decode(data)
        self._read += len(text)
        *lines, last = _LINE_END.split(text)
        for line in lines:
            self._take(self._line + line)
            self._line = ""
        # No more of a line than shows that it is too long.
        self._line = (self._line + last)[: LONGEST_URL + 1]
        if self._read > _PATIENCE and not self._findings.entries:
            raise SitemapEnded("no sitemap: neither XML nor lines with URLs")

    def close(self) -> None:
        """Read the last line. Raises SitemapEnded."""
        self._take(self._line + self._decoder.decode(b"", final=True))
        if not self._findings.entries and self._findings.skipped:
            raise SitemapEnded("no sitemap: neither XML nor lines with URLs")

    def _take(self, line: str) -> None:
        url = line.strip(" \t\0\ufeff")
        if not url:
            return
        if _URL.match(url):
            # Octets that are not UTF-8 are sent as they are.
            self._findings.entry(_SURROGATES.sub(_percent_encoded, url))
        else:
            self._findings.skipped += 1


def _percent_encoded(octets: re.Match[str]) -> str:
    # All octets in one step: a file may have nothing else.
    return "%" + octets[0].encode("utf-8", "surrogateescape").hex("%").upper()
