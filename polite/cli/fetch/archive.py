"""Where bodies are kept: a folder, or a WARC file, with a response and a request record each, one gzip member per record."""

import asyncio
import io
import os
import zlib
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polite.cli.fetch.page import Page
from polite.cli.options import SECRET
from polite.errors import InvalidOption
from polite.options import needing
from polite.origin import Target
from polite.robots.exchange import BodyEnd
from polite.transports.http import CapturedResponse
from polite.version import __version__

if TYPE_CHECKING:
    from warcio.warcwriter import WARCWriter

BODIES = "bodies"


class Folder:
    """Stores bodies as `bodies/ab/ab12...` (SHA-256) below `path`. A file gets its name once it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, page: Page) -> str | None:
        """Return the file's name relative to the folder, or None for an empty body. Raises OSError."""
        return await asyncio.to_thread(self._write, page.body) if page.body else None

    def _write(self, body: bytes) -> str:
        name = sha256(body).hexdigest()
        file = self._path / BODIES / name[:2] / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may store the same body at the same time.
            unfinished = file.with_name(f"{name}.{os.urandom(8).hex()}.part")
            try:
                unfinished.write_bytes(body)
                unfinished.replace(file)
            finally:
                unfinished.unlink(missing_ok=True)
        return file.relative_to(self._path).as_posix()


_CHUNK = 1 << 20
_MAGIC = b"WARC/"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# WARC-Truncated values for incomplete bodies (WARC 1.1, 5.13). Of a robots.txt with a status of an error none is read.
_TRUNCATED = {BodyEnd.CAPPED: "length", BodyEnd.CUT_SHORT: "disconnect", None: "unspecified"}
_REMOVED = "(removed)"
_NOT_MODIFIED = 304
# WARC 1.1, 6.7.3: the page is as an earlier record has it.
_UNCHANGED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
# aiohttp has decoded this coding; with the field, a reader would expect chunks.
_DECODED = "transfer-encoding"


class Warc:
    """Appends pages to the WARC file `path`, one complete record after another.

    Args:
        path: the file.
        agent: the User-Agent header, for the warcinfo record.
        robots: the policy that was obeyed, for the same: a dialect's name, of which WARC 1.1 knows "classic".

    Raises InvalidOption if warcio is missing or the name does not end in .warc.gz.
    """

    def __init__(self, path: Path, *, agent: str = "", robots: str = "") -> None:
        if not path.name.endswith(".warc.gz"):
            raise InvalidOption(f"--warc {path}: the name must end in .warc.gz")
        self._make_writer, self._head = _warcio()
        self._path = path
        self._info = {"http-header-user-agent": agent, "robots": robots}
        self._busy = asyncio.Lock()
        self._begun = False

    async def keep(self, page: CapturedResponse) -> str:
        """Append a page, and return the file's name. Raises OSError."""
        async with self._busy:
            await asyncio.to_thread(self._append, page)
        return self._path.name

    async def close(self) -> None:
        """Wait for a write in progress."""
        async with self._busy:
            pass

    def _append(self, page: CapturedResponse) -> None:
        records = io.BytesIO()
        writer: WARCWriter = self._make_writer(records, gzip=True, warc_version="1.1")
        if not self._begun:
            repair(self._path)
            software = f"polite/{__version__} (warcio)"
            info = {"software": software, "format": "WARC File Format 1.1", **self._info}
            # A file name may contain octets that are not UTF-8.
            name = self._path.name.encode("utf-8", "backslashreplace").decode("utf-8")
            writer.write_record(writer.create_warcinfo_record(name, info))
        self._write(writer, page)
        with self._path.open("ab") as file:
            file.write(records.getbuffer())
        self._begun = True

    def _write(self, writer: "WARCWriter", page: CapturedResponse) -> None:
        target = Target.of(page.url)
        fields = [
            (f"X-Archive-Orig-{name}" if name.lower() == _DECODED else name, value)
            for name, value in page.fields
        ]
        status = self._head(f"{page.status} {_octets(page.reason)}", fields, protocol="HTTP/1.1")
        truncated = _TRUNCATED.get(page.end)
        address = {} if page.address is None else {"WARC-IP-Address": page.address}
        more = address if truncated is None else {**address, "WARC-Truncated": truncated}
        sent = page.request_fields
        conditional = any(name.lower() in ("if-none-match", "if-modified-since") for name, _ in sent)
        unchanged = conditional and page.status == _NOT_MODIFIED
        response = writer.create_warc_record(
            page.url,
            "revisit" if unchanged else "response",
            payload=io.BytesIO(page.raw),
            length=len(page.raw),  # without it, warcio copies the payload to a temporary file
            http_headers=status,
            warc_headers_dict={**more, "WARC-Profile": _UNCHANGED} if unchanged else more,
        )
        fields = [(name, _REMOVED if name.lower() in SECRET else _octets(value)) for name, value in sent]
        request_head = self._head(f"GET {target.path} HTTP/1.1", fields, is_http_request=True)
        request = writer.create_warc_record(
            page.url, "request", http_headers=request_head, warc_headers_dict=dict(address)
        )
        writer.write_request_response_pair(request, response)


def _octets(text: str) -> str:
    """Return aiohttp's text as Latin-1 text of the octets on the wire, as in `Page.fields`."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _warcio() -> tuple[Any, Any]:
    """Return warcio's writer, and its class for HTTP heads, changed to write the octets that were on the wire.

    warcio itself rewrites non-ASCII fields, and raises UnicodeEncodeError for `größe=1; path=/`. Raises InvalidOption.
    """
    with needing("--warc needs the package warcio", "warc"):
        from warcio import statusandheaders, warcwriter

    class Head(statusandheaders.StatusAndHeaders):  # type: ignore[misc]
        def to_ascii_bytes(self, filter_func: Any = None) -> bytes:  # noqa: ANN401
            octets: bytes = self.to_bytes(filter_func, "latin-1")
            return octets

    return warcwriter.WARCWriter, Head


def repair(path: Path) -> int:
    """Remove an incomplete last record, as a killed process leaves it. Return its length in octets.

    Raises OSError, and InvalidOption for a file that is not a WARC.
    """
    if not path.exists():
        return 0
    # Decodes in bounded pieces, since a record may be large.
    end = read = 0
    member, begun = zlib.decompressobj(_GZIP_WINDOW), False
    with path.open("r+b") as file:
        while chunk := file.read(_CHUNK):
            read += len(chunk)
            while chunk:
                try:
                    decoded = member.decompress(chunk, _CHUNK)
                except zlib.error:
                    decoded = None
                if decoded is None or not (begun or decoded.startswith(_MAGIC[: len(decoded)])):
                    raise InvalidOption(
                        f"--warc {path}: octet {end} does not start a gzipped WARC record; the file was not changed"
                    )
                begun = begun or bool(decoded)
                chunk = member.unconsumed_tail
                if member.eof:
                    chunk = member.unused_data
                    end = read - len(chunk)
                    member = zlib.decompressobj(_GZIP_WINDOW)
        file.truncate(end)
    return read - end


Archive = Folder | Warc
