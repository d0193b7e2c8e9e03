"""Inflater: decodes a body within a limit, and tells how it ended."""

import zlib

from polite.robots.exchange import BodyEnd

# An honest server sends one gzip member. A few are allowed (RFC 1952, 2.2); thousands would only consume time.
_MOST_MEMBERS = 16
_MAGIC = b"\x1f\x8b"
_GZIP = {"gzip", "x-gzip"}
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Inflater:
    """Decodes a body chunk by chunk, and never holds more than `limit` decoded octets.

    Feed it until `full`, then call `end`.

    Args:
        coding: the Content-Encoding.
        limit: octets of the decoded body that count.
        junk_allowed: whether octets after the end of the coded body are ignored, as large crawlers do. If false, they make the
            body corrupt.
        finds_gzip: whether a body that starts with gzip's magic number is decoded although no Content-Encoding says so. If it is
            still gzip after that, it is corrupt. Such octets are no text, and would read as a file without rules.

    Attributes:
        full: whether more chunks have no effect.
    """

    def __init__(
        self, coding: str, limit: int, *, junk_allowed: bool = True, finds_gzip: bool = False
    ) -> None:
        name = coding.strip().lower()
        self._known = name in {"", "identity"} | _GZIP
        self._member = zlib.decompressobj(_GZIP_WINDOW) if name in _GZIP else None
        self._members = 1
        self._junk_allowed = junk_allowed
        self._limit = limit
        self._body = bytearray()
        self._corrupt = False
        self._started = False
        self._split_magic = b""
        self._finds_gzip = finds_gzip
        self._looks_for_gzip = finds_gzip and self._member is None
        self.full: bool = not self._known

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def feed(self, chunk: bytes) -> None:
        """Take one chunk. Octets after the limit, or after the coded body's end, are dropped."""
        if self.full or not chunk:
            return
        self._started = True
        if self._looks_for_gzip:
            chunk = self._detect_gzip(chunk)
        if self._member is None:
            self._keep(chunk)
        else:
            self._inflate(chunk)

    def end(self, *, cut_short: bool = False) -> BodyEnd:
        """Return how the body ended. `cut_short`: whether the connection broke off."""
        if not self._known:
            return BodyEnd.UNKNOWN_CODING
        if self._corrupt or (self._finds_gzip and self._body.startswith(_MAGIC)):
            return BodyEnd.CORRUPT
        if self.full and len(self._body) >= self._limit:
            return BodyEnd.CAPPED
        inside_member = self._member is not None and not self._member.eof and self._started
        inside_magic = self._looks_for_gzip and self._split_magic != b""
        if self._split_magic and not inside_magic and not self._junk_allowed:
            return BodyEnd.CORRUPT
        return BodyEnd.CUT_SHORT if cut_short or inside_member or inside_magic else BodyEnd.COMPLETE

    def _detect_gzip(self, chunk: bytes) -> bytes:
        start = self._split_magic + chunk
        self._split_magic = start if start == _MAGIC[:1] else b""
        if self._split_magic:
            return b""
        self._looks_for_gzip = False
        if start.startswith(_MAGIC):
            self._member = zlib.decompressobj(_GZIP_WINDOW)
        return start

    def _keep(self, data: bytes) -> None:
        """Keep data up to the limit. A further octet shows that the body is capped."""
        left = self._limit - len(self._body)
        self._body += data[:left]
        self.full = len(data) > left

    def _inflate(self, chunk: bytes) -> None:
        chunk = self._split_magic + chunk
        self._split_magic = b""
        while chunk and not self.full and self._member is not None:
            if self._member.eof and not self._next_member(chunk):
                return
            try:
                data = self._member.decompress(chunk, self._limit - len(self._body) + 1)
            except zlib.error:
                self._corrupt = self.full = True
                return
            self._keep(data)
            chunk = self._member.unconsumed_tail or self._member.unused_data

    def _next_member(self, rest: bytes) -> bool:
        """Return whether another gzip member follows a finished one.

        Other octets are junk; the finished body counts.
        """
        if rest == _MAGIC[:1]:
            self._split_magic = rest
            return False
        if not rest.startswith(_MAGIC):
            self.full = True
            self._corrupt = not self._junk_allowed
            return False
        self._members += 1
        if self._members > _MOST_MEMBERS:
            self._corrupt = self.full = True
            return False
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        return True
