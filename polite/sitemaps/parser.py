"""SitemapParser: a sitemap of any format as a push parser, without I/O."""

import re
from collections.abc import Iterator

from polite.origin import Target
from polite.sitemaps.entry import SitemapKind
from polite.sitemaps.findings import Findings, Found
from polite.sitemaps.gunzip import Unzipped
from polite.sitemaps.policy import SitemapPolicy
from polite.sitemaps.problem import SitemapEnded
from polite.sitemaps.text_reader import TextReader
from polite.sitemaps.xml_reader import XmlReader

_UTF8_BOM = b"\xef\xbb\xbf"
# The first octets of UTF-16, with a BOM or without, and how many of them are the BOM.
_UTF16 = {
    b"\xff\xfe": ("UTF-16LE", 2),
    b"\xfe\xff": ("UTF-16BE", 2),
    b"<\0": ("UTF-16LE", 0),
    b"\0<": ("UTF-16BE", 0),
}
_BLANK = " \t\r\n\0"
# A file with more blanks at its beginning is not read.
_MOST_BLANKS = 65_536
# Enough for an XML declaration.
_DECLARATION = 256
# Some files say UTF-16 and are UTF-8: their writer had a string of characters, not of octets.
_DECLARED = re.compile(rb"<\?xml[^>]*encoding\s*=\s*['\"]utf-?16", re.IGNORECASE)


class SitemapParser:
    """Reads one sitemap: XML, an index, RSS 2.0, Atom or text, each in gzip or not.

        >>> parser = SitemapParser("https://example.com/sitemap.txt")
        >>> for found in parser.feed(b"https://example.com/a" + b"\\n" + b"https://example.com/b"):
        ...     print([entry.url for entry in found])
        ['https://example.com/a']
        >>> [entry.url for entry in parser.close()], parser.problem
        (['https://example.com/b'], None)

    Args:
        url: The file's URL. Relative URLs in it are resolved against this.
        policy: Limits.

    Attributes:
        ended: Whether more octets have no effect.
        problem: Why the file was not read to its end; None if nothing is wrong so far.
    """

    def __init__(self, url: str, policy: SitemapPolicy | None = None) -> None:
        self.ended: bool = False
        self.problem: str | None = None
        policy = SitemapPolicy() if policy is None else policy
        self._findings = Findings(Target.of(url), policy)
        self._octets = Unzipped(policy.max_bytes)
        self._reader: XmlReader | TextReader | None = None
        self._head = b""

    @property
    def kind(self) -> SitemapKind | None:
        """The format, or None as long as it is not known."""
        return self._findings.kind

    @property
    def entries(self) -> int:
        """How many entries and links were found so far."""
        return self._findings.entries

    @property
    def skipped(self) -> int:
        """How many entries and links were skipped so far, since they have no URL of http or https."""
        return self._findings.skipped

    def feed(self, chunk: bytes) -> Iterator[list[Found]]:
        """Take a chunk, and return what is found in it: one list, perhaps empty, for at most 16 KiB of the decompressed file.

        Each list takes some milliseconds. An event loop can run other tasks between two. What is not iterated comes with the next
        call.
        """
        if not self.ended:
            self._octets.feed(chunk)
        return self._lists()

    def close(self, *, cut_short: bool = False) -> list[Found]:
        """End the file, and return what was found since the last list.

        Args:
            cut_short: The connection broke off.
        """
        found = [each for piece in self._lists(final=True) for each in piece]
        if not self.ended:
            try:
                self._finish(cut_short=cut_short or self._octets.cut_short)
            except SitemapEnded as error:
                self._end(error)
        self.ended = True
        return found + self._findings.take()

    def _lists(self, *, final: bool = False) -> Iterator[list[Found]]:
        while not self.ended:
            try:
                data = self._octets.read(final=final)
                if data is None:
                    return
                self._read(data, final=False)
            except SitemapEnded as error:
                self._end(error)
            yield self._findings.take()

    def _end(self, error: SitemapEnded) -> None:
        self.problem, self.ended = str(error), True

    def _finish(self, *, cut_short: bool) -> None:
        self._read(b"", final=True)
        if self._reader is None:
            raise SitemapEnded("the file is cut short" if cut_short else "the file is empty")
        if not cut_short:
            self._reader.close()
        elif not self.ended:
            # Its last line may be a part of a URL.
            raise SitemapEnded("the file is cut short")

    def _read(self, data: bytes, *, final: bool) -> None:
        if self._reader is None:
            data = self._begin(self._head + data, final=final)
        if self._reader is not None and data:
            self._reader.feed(data)
            self.ended = isinstance(self._reader, XmlReader) and self._reader.ended

    def _begin(self, head: bytes, *, final: bool) -> bytes:
        """Choose the reader by the first character, and return what it is to read; keep the head if it does not tell yet."""
        self._head = head
        if len(head) < 4 and not final:
            return b""
        encoding, bom = _UTF16.get(head[:2], ("UTF-8", 3 if head.startswith(_UTF8_BOM) else 0))
        width = 1 if encoding == "UTF-8" else 2
        text = head[bom:].decode("latin-1" if width == 1 else encoding, "ignore")
        blanks = len(text) - len(text.lstrip(_BLANK))
        if blanks == len(text):
            if len(head) > _MOST_BLANKS:
                raise SitemapEnded(f"no sitemap: it begins with more than {_MOST_BLANKS} blank octets")
            return b""
        rest = head[bom + blanks * width :]
        if text[blanks] != "<":
            self._reader = TextReader(self._findings, encoding)
        elif b">" not in rest and len(rest) < _DECLARATION and not final:
            return b""
        else:
            known = bom > 0 or width == 2 or _DECLARED.match(rest)
            self._reader = XmlReader(self._findings, encoding if known else None)
        self._head = b""
        return rest
