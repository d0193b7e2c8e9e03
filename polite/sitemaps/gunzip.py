"""Unzipped: octets without the gzip streams that they are in, a limited piece at a time."""

import zlib

from polite.sitemaps.problem import SitemapEnded, beyond

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
            raise beyond("max_bytes", self._limit, "octets")
        return data

    def _inflate(self, *, final: bool) -> bytes | None:
        """Return some octets of the stream, perhaps none, or None if another chunk is needed."""
        if self._member is None or self._member.eof:
            if self._member is not None and (another := self._another(final=final)) is not True:
                return None if another is None else b""
            self._member = zlib.decompressobj(_GZIP_WINDOW)
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise SitemapEnded(f"more than {_MOST_MEMBERS} gzip members")
        try:
            # One octet more than the limit shows that it is exceeded.
            most = min(_PIECE, self._limit - self._came_out + 1)
            data = self._member.decompress(self._take(), most)
        except zlib.error as error:
            raise SitemapEnded(f"the gzip stream is corrupt: {error}") from error
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
