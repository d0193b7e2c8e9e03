"""Pages in a WARC file, written by warcio: a response record and its request record each, one gzip member a record."""

import asyncio
import io
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from polite.cli.fetch.page import Page
from polite.errors import InvalidOption
from polite.origin import Target
from polite.robots.fetching.exchange import BodyEnd
from polite.version import __version__

if TYPE_CHECKING:
    from warcio.warcwriter import WARCWriter

_CHUNK = 1 << 20
_MAGIC = b"WARC/"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# How WARC 1.1 (5.13) says that a body is not all there.
_TRUNCATED = {BodyEnd.CAPPED: "length", BodyEnd.CUT_SHORT: "disconnect"}
# aiohttp has taken this coding away: a reader that looked for it would find no chunks.
_UNDONE = "transfer-encoding"


class Warc:
    """Appends to `path`, made if need be. Records reach the file whole, one after the other.

    Raises InvalidOption when warcio is missing or the name is no WARC's, OSError.
    """

    def __init__(self, path: Path) -> None:
        if not path.name.endswith(".warc.gz"):
            raise InvalidOption(f"--warc {path}: a name that ends in .warc.gz is needed")
        _warcio()
        self._path = path
        self._busy = asyncio.Lock()
        self._begun = False

    async def keep(self, page: Page) -> str:
        """The file's name. Raises OSError."""
        async with self._busy:
            await asyncio.to_thread(self._append, page)
        return self._path.name

    async def close(self) -> None:
        """Wait until what is being written is written."""
        async with self._busy:
            pass

    def _append(self, page: Page) -> None:
        records = io.BytesIO()
        writer: WARCWriter = _warcio().WARCWriter(records, gzip=True, warc_version="1.1")
        if not self._begun:
            mend(self._path)
            software = f"polite/{__version__} (warcio)"
            info = {"software": software, "format": "WARC File Format 1.1"}
            # A file's name may hold octets that are no UTF-8.
            name = self._path.name.encode("utf-8", "backslashreplace").decode("utf-8")
            writer.write_record(writer.create_warcinfo_record(name, info))
        _write(writer, page)
        with self._path.open("ab") as file:
            file.write(records.getbuffer())
        self._begun = True


def _write(writer: "WARCWriter", page: Page) -> None:
    target = Target.of(page.url)
    fields = [(_renamed(name), value) for name, value in page.fields]
    status = _head()(f"{page.status} {_octets(page.reason)}", fields, protocol="HTTP/1.1")
    truncated = _TRUNCATED.get(page.end)
    response = writer.create_warc_record(
        page.url,
        "response",
        payload=io.BytesIO(page.raw),
        length=len(page.raw),  # unknown, it would be copied to a file first
        http_headers=status,
        warc_headers_dict={} if truncated is None else {"WARC-Truncated": truncated},
    )
    fields = [(name, _octets(value)) for name, value in page.asked]
    asked = _head()(f"GET {target.path} HTTP/1.1", fields, is_http_request=True)
    request = writer.create_warc_record(page.url, "request", http_headers=asked)
    writer.write_request_response_pair(request, response)


def _renamed(name: str) -> str:
    return f"X-Archive-Orig-{name}" if name.lower() == _UNDONE else name


def _octets(text: str) -> str:
    """The octets that aiohttp made the text of, or makes of it, a character for each, as in `Page.fields`."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


@cache
def _head() -> Any:  # noqa: ANN401 - warcio has no types
    """warcio's class for a head, made to write the octets that went over the wire.

    warcio's own rewrites fields beyond ASCII, and raises UnicodeEncodeError for `größe=1; path=/`.
    """
    from warcio.statusandheaders import StatusAndHeaders

    class Head(StatusAndHeaders):  # type: ignore[misc]
        def to_ascii_bytes(self, filter_func: Any = None) -> bytes:  # noqa: ANN401
            octets: bytes = self.to_bytes(filter_func, "latin-1")
            return octets

    return Head


def mend(path: Path) -> int:
    """Take away what a process that was killed has left of its last record; gives how many octets that were.

    Raises OSError, and InvalidOption for a file that is no WARC.
    """
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        whole = _whole(file, path)
        cut = file.seek(0, io.SEEK_END) - whole
        file.truncate(whole)
    return cut


def _whole(file: BinaryIO, path: Path) -> int:
    """Where the last complete gzip member ends. What is decoded is looked at in pieces: a record may be large."""
    end = read = 0
    member, begun = zlib.decompressobj(_GZIP_WINDOW), False
    while chunk := file.read(_CHUNK):
        read += len(chunk)
        while chunk:
            try:
                decoded = member.decompress(chunk, _CHUNK)
            except zlib.error:
                raise _no_warc(path, end) from None
            if decoded and not begun and not decoded.startswith(_MAGIC[: len(decoded)]):
                raise _no_warc(path, 0)
            begun = begun or bool(decoded)
            chunk = member.unconsumed_tail
            if member.eof:
                chunk = member.unused_data
                end = read - len(chunk)
                member = zlib.decompressobj(_GZIP_WINDOW)
    return end


def _no_warc(path: Path, at: int) -> InvalidOption:
    return InvalidOption(
        f"--warc {path}: what stands at octet {at} is no WARC record packed by gzip; the file is left as it is"
    )


def _warcio() -> Any:  # noqa: ANN401 - warcio has no types
    try:
        from warcio import warcwriter
    except ImportError as error:
        raise InvalidOption(
            "--warc needs the package warcio: python -m pip install 'polite-crawl[warc]'"
        ) from error
    return warcwriter
