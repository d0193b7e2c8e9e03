"""SitemapParser: a sitemap of any format as a push parser, without I/O."""

import codecs
import re
import zlib
from collections.abc import Iterator

from polite.origin import Target
from polite.sitemaps import entry
from polite.sitemaps.xml_reader import XmlReader

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

    def __init__(self, findings: entry.Findings, encoding: str) -> None:
        self._findings = findings
        findings.kind = entry.SitemapKind.TEXT
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
        self._line = (self._line + last)[: entry.LONGEST_URL + 1]
        if self._read > _PATIENCE and not self._findings.entries:
            raise entry.SitemapEnded("no sitemap: neither XML nor lines with URLs")

    def close(self) -> None:
        """Read the last line. Raises SitemapEnded."""
        self._take(self._line + self._decoder.decode(b"", final=True))
        if not self._findings.entries and self._findings.skipped:
            raise entry.SitemapEnded("no sitemap: neither XML nor lines with URLs")

    def _take(self, line: str) -> None:
        url = line.strip(" \t\0\ufeff")
        if not url:
            return
        if _URL.match(url):
            # Octets that are not UTF-8 are sent as they are. All in one step: a file may have nothing else.
            self._findings.entry(
                _SURROGATES.sub(
                    lambda found: "%" + found[0].encode("utf-8", "surrogateescape").hex("%").upper(), url
                )
            )
        else:
            self._findings.skipped += 1


_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# Octets that one call inflates: a small chunk can hold a thousand times as many, and an event loop waits meanwhile.
_PIECE = 16_384
# Tools that compress in parallel write a member for each 64 KiB. More are made to consume time: a new one costs 10 us.
_MOST_MEMBERS = 10_000


class Unzipped:
    """Removes gzip if the first octets have its magic number; twice, as `Content-Encoding: gzip` of a .gz file has it.

    Octets after the end of a stream are ignored, as in `FetchPolicy.junk_after_gzip`.

    Args:
        limit: octets that may come out.
        layers: how many gzip streams may be inside each other.
    """

    def __init__(self, limit: int, layers: int = 2) -> None:
        self._limit = limit
        self._layers = layers
        self._raw = b""
        self._at = 0
        self._inner: Unzipped | None = None
        self._member: zlib._Decompress | None = None
        self._members = 0
        self._came_out = 0
        self._decided = layers == 0
        self._junk = False  # the stream has ended, and other octets follow

    @property
    def cut_short(self) -> bool:
        """Whether a gzip stream has not ended yet."""
        if self._inner is None:
            return False
        return (self._member is not None and not self._member.eof) or self._inner.cut_short

    def feed(self, chunk: bytes) -> None:
        """Take one chunk."""
        self._raw = b"" if self._junk else self._raw[self._at :] + chunk
        self._at = 0

    def read(self, *, final: bool = False) -> bytes | None:
        """Return the next octets: perhaps none yet, or None if another chunk is needed.

        Args:
            final: no other chunk comes.

        Raises:
            SitemapEnded: The stream is corrupt, or longer than the limit.
        """
        if not self._decided:
            if len(self._raw) < len(_MAGIC) and not final:
                return None
            self._decided = True
            if self._raw.startswith(_MAGIC):
                self._inner = Unzipped(self._limit, self._layers - 1)
        if self._inner is None:
            return self._count(self._take()) or None
        found = self._inner.read(final=final and self._at == len(self._raw))
        if found is None and self._at < len(self._raw) and (data := self._inflate(final=final)) is not None:
            self._inner.feed(self._count(data))
            return b""
        return found

    def _take(self) -> bytes:
        start = self._at
        self._at = min(start + _PIECE, len(self._raw))
        return self._raw[start : self._at]

    def _count(self, data: bytes) -> bytes:
        """Count what comes out; the octet after the limit ends the file."""
        self._came_out += len(data)
        if self._came_out > self._limit:
            raise entry.beyond("max_bytes", self._limit, "octets")
        return data

    def _inflate(self, *, final: bool) -> bytes | None:
        """Return some octets of the stream, perhaps none, or None if another chunk is needed."""
        if self._member is None or self._member.eof:
            if self._member is not None and (another := self._another(final=final)) is not True:
                return None if another is None else b""
            self._member = zlib.decompressobj(_GZIP_WINDOW)
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise entry.SitemapEnded(f"more than {_MOST_MEMBERS} gzip members")
        try:
            # One octet more than the limit shows that it is exceeded.
            most = min(_PIECE, self._limit - self._came_out + 1)
            data = self._member.decompress(self._take(), most)
        except zlib.error as error:
            raise entry.SitemapEnded(f"the gzip stream is corrupt: {error}") from error
        self._at -= len(self._member.unconsumed_tail) + len(self._member.unused_data)
        return data

    def _another(self, *, final: bool) -> bool | None:
        """Whether another member follows; None if that needs another chunk. Other octets are ignored, and all that follow them."""
        rest = self._raw[self._at : self._at + len(_MAGIC)]
        if rest == _MAGIC:
            return True
        if rest == _MAGIC[:1] and not final:
            return None
        self._raw, self._at = b"", 0
        self._junk = True
        return False


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

    def __init__(self, url: str, policy: entry.SitemapPolicy | None = None) -> None:
        self.ended: bool = False
        self.problem: str | None = None
        policy = entry.SitemapPolicy() if policy is None else policy
        self._findings = entry.Findings(Target.of(url), policy)
        self._octets = Unzipped(policy.max_bytes)
        self._reader: XmlReader | TextReader | None = None
        self._head = b""

    @property
    def kind(self) -> entry.SitemapKind | None:
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

    def feed(self, chunk: bytes) -> Iterator[list[entry.Found]]:
        """Take a chunk, and return what is found in it: one list, perhaps empty, for at most 16 KiB of the decompressed file.

        Each list takes some milliseconds. An event loop can run other tasks between two. What is not iterated comes with the next
        call.
        """
        if not self.ended:
            self._octets.feed(chunk)
        return self._lists()

    def close(self, *, cut_short: bool = False) -> list[entry.Found]:
        """End the file, and return what was found since the last list.

        Args:
            cut_short: The connection broke off.
        """
        found = [each for piece in self._lists(final=True) for each in piece]
        if not self.ended:
            try:
                self._finish(cut_short=cut_short or self._octets.cut_short)
            except entry.SitemapEnded as error:
                self.problem = str(error)
        self.ended = True
        return found + self._findings.take()

    def _lists(self, *, final: bool = False) -> Iterator[list[entry.Found]]:
        while not self.ended:
            try:
                data = self._octets.read(final=final)
                if data is None:
                    return
                self._read(data, final=False)
            except entry.SitemapEnded as error:
                self.problem, self.ended = str(error), True
            yield self._findings.take()

    def _finish(self, *, cut_short: bool) -> None:
        self._read(b"", final=True)
        if self._reader is None:
            raise entry.SitemapEnded("the file is cut short" if cut_short else "the file is empty")
        if not cut_short:
            self._reader.close()
        elif not self.ended:
            # Its last line may be a part of a URL.
            raise entry.SitemapEnded("the file is cut short")

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
                raise entry.SitemapEnded(f"no sitemap: it begins with more than {_MOST_BLANKS} blank octets")
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
