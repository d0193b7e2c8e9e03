"""The fetch of a site's TDM file (TDMRep, 6.2), in turns, and what its absence means."""

import zlib

from polite.gate.file_fetch import Fetched, FileFetch, FileLimits
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.robots.tdm_file import TDM_LIMIT, TDM_PATH, TdmFile, parse_tdm_file, reserved_whole

_SCHEMES = frozenset({"http", "https"})
_GZIP = b"\x1f\x8b"


async def fetch_tdm_file(services: Services, origin: Origin) -> TdmFile:
    """Fetch and read the file. Raises what waiting for a permit raises, except for Disallowed."""
    if origin.scheme not in _SCHEMES:
        return TdmFile(problem=f"{origin.scheme}: has no well-known files")
    body = bytearray()

    async def take(octets: bytes) -> None:
        body.extend(octets[: TDM_LIMIT + 1 - len(body)])

    fetching = services.downloads.fetching
    # One octet more tells a file that is too large.
    limits = FileLimits("FetchPolicy", TDM_LIMIT + 1, fetching.max_redirects, fetching.timeout)
    fetched = await FileFetch(services, limits, take).run(Target(origin, TDM_PATH))
    return _absent(fetched, fetched.problem) if fetched.problem else parse_tdm_file(_decoded(bytes(body)))


def _absent(fetched: Fetched, problem: str) -> TdmFile:
    """Return what it means that there is no file.

    A site that does not give access to it does not use the protocol (6.2). What may pass is no such answer.
    """
    status = fetched.status or 0
    is_answer = fetched.disallowed or (300 <= status < 500 and status != 429)
    return TdmFile(problem=problem) if is_answer else reserved_whole(problem)


def _decoded(body: bytes) -> bytes:
    """Return a body that may be in gzip, as far as it can be decoded and counts."""
    if not body.startswith(_GZIP):
        return body
    try:
        return zlib.decompressobj(wbits=31).decompress(body, TDM_LIMIT + 1)
    except zlib.error:
        # What it stands for cannot be told, as of JSON that is cut short.
        return b"["
