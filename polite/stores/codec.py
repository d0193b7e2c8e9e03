"""encode and decode: what is known of a robots.txt as octets, for a store of your own."""

from polite.robots.exchange import wrong_field
from polite.robots.serialization import CorruptRobots
from polite.robots.snapshot import Snapshot
from polite.stores import rows

_MARK = b"polite-snapshot "


def encode(snapshot: Snapshot) -> bytes:
    """Return a snapshot as octets for `decode`, with a checksum. A body of 4,096 octets or more is compressed (zlib).

    >>> from polite.ports import Snapshot
    >>> from polite.robots.result import Found
    >>> snapshot = Snapshot(Found(b"User-agent: *", 200, "https://example.com/robots.txt"), 1e9, 1.1e9)
    >>> decode(encode(snapshot)) == snapshot
    True

    Raises:
        TypeError: It is no Snapshot, or a field of it has another type.
    """
    given: object = snapshot
    wrong = wrong_field(given) if isinstance(given, Snapshot) else f"it is {given!r}"
    if wrong is not None:
        raise TypeError(f"snapshot must be a Snapshot of polite.ports: {wrong}")
    return _MARK + rows.encoded(rows.row("", snapshot))


def decode(octets: bytes | bytearray | memoryview) -> Snapshot:
    """Return the snapshot that `encode` made octets of. A store may treat one that is corrupt as none: it is fetched again.

    >>> decode(b"{}")
    Traceback (most recent call last):
    ...
    polite.robots.serialization.CorruptRobots: a snapshot starts with b'polite-snapshot ', not with b'{}'

    Raises:
        CorruptRobots: The octets were cut short or changed, or `encode` did not make them.
        TypeError: They are no octets.
    """
    given: object = octets
    if not isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(f"octets must be bytes, got {type(given).__name__}")
    octets = bytes(given)
    if not octets.startswith(_MARK):
        raise CorruptRobots(f"a snapshot starts with {_MARK!r}, not with {octets[: len(_MARK)]!r}")
    row = rows.decoded("", octets[len(_MARK) :], len(rows.COLUMNS)) or ()
    try:
        found = rows.snapshot(row)
    except (rows.Unreadable, ValueError) as error:
        raise CorruptRobots(f"a snapshot of {len(octets)} octets was cut short or changed") from error
    wrong = wrong_field(found)
    if wrong is None and rows.encoded(tuple(row)) != octets[len(_MARK) :]:
        wrong = "there are octets after its end"
    if wrong is not None:
        raise CorruptRobots(f"a snapshot of {len(octets)} octets makes no sense: {wrong}")
    return found
