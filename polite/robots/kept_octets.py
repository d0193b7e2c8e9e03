"""KeptOctets: the octets of a robots.txt in memory, compressed where that saves any."""

import zlib

# Below this, an object for the compressed octets saves too little to be worth its time.
_LEAST = 512
# Of 2,000 real files, level 6 takes twice the time of level 1 and leaves 11 % less.
_LEVEL = 1


class KeptOctets:
    """The octets of a file that is kept, compressed (zlib) if that is shorter. Immutable.

    Equal to equal octets, whether those are compressed or not.

        >>> from polite.robots.kept_octets import KeptOctets
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
