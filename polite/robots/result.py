"""The result of a robots fetch: a file, no file, or nothing reliable (RFC 9309, 2.3.1)."""

import zlib
from dataclasses import dataclass, replace

from polite.robots.reason import Reason

# Below this, an object for the compressed octets saves too little to be worth its time.
_LEAST = 512
# Of 2,000 real files, level 6 takes twice the time of level 1 and leaves 11 % less.
_LEVEL = 1


class KeptOctets:
    """The octets of a file that is kept, compressed (zlib) if that is shorter. Immutable.

    Equal to equal octets, whether those are compressed or not.

        >>> from polite.robots.result import KeptOctets
        >>> kept = KeptOctets(b"Disallow: /\\n" * 1_000)
        >>> kept.length, len(kept.packed) < 200, kept.octets[:11]
        (12000, True, b'Disallow: /')

    Attributes:
        length: the number of octets.
        packed: the octets as they are kept. They are compressed if they are fewer than `length`.
    """

    __slots__ = ("length", "packed")

    def __init__(self, octets: bytes, packed: bytes | None = None) -> None:
        """Compress octets: about 8 us for each kB.

        Args:
            octets: the octets.
            packed: the same octets compressed, if they were before: then they are not again.
        """
        self.length: int = len(octets)
        if packed is None:
            packed = zlib.compress(octets, _LEVEL) if len(octets) >= _LEAST else octets
        self.packed: bytes = packed if len(packed) < len(octets) else octets

    @property
    def octets(self) -> bytes:
        """The octets, as they were."""
        if len(self.packed) == self.length:
            return self.packed
        # No more than that is inflated, whatever a store says.
        return zlib.decompressobj().decompress(self.packed, self.length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bytes):
            return self.length == len(other) and self.octets == other
        if not isinstance(other, KeptOctets):
            return NotImplemented
        if self.packed == other.packed:
            return self.length == other.length
        # Another version of zlib may have compressed it.
        return self.length == other.length and self.octets == other.octets

    def __hash__(self) -> int:
        return hash(self.octets)

    def __repr__(self) -> str:
        return f"KeptOctets({self.octets!r})"

    def __reduce__(self) -> tuple[type["KeptOctets"], tuple[bytes]]:
        return KeptOctets, (self.octets,)


@dataclass(frozen=True, slots=True)
class Found:
    """2xx: the file's rules decide (H1).

    Attributes:
        file: the decoded body, up to the limit; as octets, or as they are kept in memory.
        status: the status of the last response.
        url: the URL of the file, after redirects.
        hops: redirects that were followed.
        capped: whether the body was longer than the limit (H9).
        elapsed_s: seconds on the network.
        max_age_s: for how many seconds the response is fresh, or None.
        downgraded: whether a redirect led from https to a scheme without encryption.
    """

    file: bytes | KeptOctets
    status: int
    url: str
    hops: int = 0
    capped: bool = False
    elapsed_s: float = 0.0
    max_age_s: float | None = None
    downgraded: bool = False

    @property
    def body(self) -> bytes:
        """The decoded body, up to the limit. Inflated anew each time, if it is kept compressed."""
        return self.file if isinstance(self.file, bytes) else self.file.octets

    @property
    def length(self) -> int:
        """The octets of the body."""
        return len(self.file) if isinstance(self.file, bytes) else self.file.length

    @property
    def reason(self) -> Reason:
        """Always `Reason.OK`."""
        return Reason.OK

    def kept(self) -> "Found":
        """Return the same result as it is kept for long: with its body compressed."""
        return replace(self, file=KeptOctets(self.file)) if isinstance(self.file, bytes) else self


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No restriction: a 4xx, too many redirects, or a 5xx that means the same (H2, H4, H7).

    Attributes:
        reason: why.
        url: the URL of the last request.
        status: the status of the last response, if there was one.
        hops: redirects that were followed.
        elapsed_s: seconds on the network.
        max_age_s: for how many seconds the response is fresh, or None.
        probes: other pages that were requested; see `Unreachable`.
    """

    reason: Reason
    url: str
    status: int | None = None
    hops: int = 0
    elapsed_s: float = 0.0
    max_age_s: float | None = None
    probes: int = 0


@dataclass(frozen=True, slots=True)
class Unreachable:
    """All is disallowed for now: a 5xx, a network failure, or an unreliable response (H5, H8).

    Attributes:
        reason: why, for programs.
        url: the URL of the last request.
        status: the status of the last response, if there was one; FTP's codes count as well.
        detail: why, for people.
        hops: redirects that were followed.
        elapsed_s: seconds on the network.
        retry_after_s: the server's Retry-After, in seconds.
        probes: other pages that were requested to infer whether the file is missing (H7).
    """

    reason: Reason
    url: str
    status: int | None = None
    detail: str = ""
    hops: int = 0
    elapsed_s: float = 0.0
    retry_after_s: float | None = None
    probes: int = 0

    @property
    def option(self) -> str:
        """The option that changes this result, such as "FetchPolicy.timeout"."""
        return self.reason.option


FetchResult = Found | Unavailable | Unreachable
"""The result of a robots fetch: a file, no file, or nothing reliable (RFC 9309, 2.3.1)."""


def length(*results: FetchResult | None) -> int:
    """Return the octets or characters that these results keep: their files, compressed or not, and URLs.

    A redirect may make a URL long.
    """
    long: dict[int, int] = {}
    for result in results:
        if result is not None:
            long[id(result.url)] = len(result.url)
        if isinstance(result, Found):
            file = result.file
            long[id(file)] = len(file) if isinstance(file, bytes) else len(file.packed)
        elif isinstance(result, Unreachable):
            long[id(result.detail)] = len(result.detail)
    return sum(long.values())
