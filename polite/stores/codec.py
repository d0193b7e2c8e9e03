"""Converts snapshots, back-offs and validators to rows of a file and to octets, and back.

`encode` and `decode` are for a store of your own.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import MISSING, fields
from marshal import dumps
from typing import Any

from polite.options import wrong_field
from polite.ports import SavedBackOff
from polite.recrawl import Validators, validators_of
from polite.robots.policy import MOST_BYTES
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, KeptOctets, Unavailable, Unreachable
from polite.robots.serialization import CorruptRobots
from polite.robots.snapshot import Snapshot

Row = tuple[str | bytes | int | float | None, ...]

_RESULT = (
    *("outcome", "reason", "url", "status", "detail", "hops", "elapsed_s", "max_age_s", "retry_after_s"),
    *("capped", "octets", "body", "more"),
)
_TIMES = ("fetched_at", "expires_at", "unreachable_since", "failures", "good_at", "good_until")
COLUMNS = ("origin", *_TIMES, *_RESULT, *(f"good_{name}" for name in _RESULT))
BACK_OFF_COLUMNS = ("origin", "since", "until", "because", "memory")
VALIDATORS_COLUMNS = ("url", "etag", "last_modified")
_LATEST = 1 + len(_TIMES)
_GOOD = _LATEST + len(_RESULT)

_ALL: tuple[type[FetchResult], ...] = (Found, Unavailable, Unreachable)
_KINDS = {kind.__name__.lower(): kind for kind in _ALL}
# If the good copy is the latest result itself, it is not written twice.
_SAME: Row = ("same", *(None for _ in _RESULT[1:]))
_NONE: Row = tuple(None for _ in _RESULT)

# Of 2,000 real files, nine in ten are shorter than a page of the database. Compressing these too would make the file a third
# smaller, take half as long again, and make them unreadable in SQLite's own tools.
_COMPRESS_FROM = 4_096
# The longest reason of a back-off, in characters: a throttle of the user's may write it.
_MAX_REASON = 500

# Fields without a column of their own are written as JSON into the column `more`, if they differ from their defaults.
_EXTRAS = {
    kind: [(field.name, field.default) for field in fields(kind) if field.name not in {*_RESULT, "file"}]
    for kind in _KINDS.values()
}
_FIELDS = {kind: [field.name for field in fields(kind)] for kind in _KINDS.values()}


class Unreadable(Exception):
    """A row or its octets were damaged, or not written by polite."""


def row(origin: str, snapshot: Snapshot) -> Row:
    """Return the values of COLUMNS. Times are floats, as the columns give them back."""
    if snapshot.good is None:
        good = _NONE
    elif snapshot.good is snapshot.access or snapshot.good == snapshot.access:
        good = _SAME
    else:
        good = _result_values(snapshot.good)
    times = {name: _float(getattr(snapshot, name)) for name in _TIMES} | {"failures": snapshot.failures}
    return (origin, *times.values(), *_result_values(snapshot.access), *good)


def snapshot(values: Sequence[Any]) -> Snapshot:
    """Return the snapshot in a row of COLUMNS. Raises Unreadable."""
    try:
        fetched_at, expires_at, since, failures, good_at, good_until = values[1:_LATEST]
        result = _result(values[_LATEST:_GOOD])
        good = None
        if values[_GOOD] is not None:
            good = _copy(result if values[_GOOD] == "same" else _result(values[_GOOD:]))
        later = {"unreachable_since": since, "good_at": good_at, "good_until": good_until}
        dates = {name: _float(value) for name, value in later.items()}
        fetched_at, expires_at = float(fetched_at), float(expires_at)
        return Snapshot(result, fetched_at, expires_at, good=good, failures=int(failures), **dates)
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError, zlib.error) as error:
        raise Unreadable(f"the row of {values[0]!r} cannot be read: {error!r}") from error


def back_off_row(origin: str, back_off: SavedBackOff) -> Row:
    """Return the values of BACK_OFF_COLUMNS."""
    because, memory = _text(back_off.because[:_MAX_REASON]), back_off.memory or None
    return origin, float(back_off.since), float(back_off.until), because, memory


def back_off(values: Sequence[Any]) -> SavedBackOff:
    """Return the back-off in a row of BACK_OFF_COLUMNS. Raises Unreadable."""
    origin, since, until, because, memory = values
    types = [type(each) for each in (since, until, because)]
    if types != [float, float, str] or not isinstance(memory, bytes | None):
        raise Unreadable(f"the back-off of {origin!r} cannot be read")
    return SavedBackOff(since, until, because, memory or b"")


def validators(values: Sequence[Any]) -> Validators:
    """Return the validators in a row of VALIDATORS_COLUMNS, as far as they are valid values of header fields."""
    # Another program may have written the file, and what it holds is sent.
    etag, last_modified = ([each] if type(each) is str else [] for each in values[1:])
    return validators_of(etag, last_modified)


def inflated(body: bytes | None, octets: int | None) -> bytes | None:
    """Return the body, decompressed if it is shorter than `octets`, its true length.

    Raises:
        ValueError: It has another length.
        zlib.error: It cannot be decompressed.
    """
    if body is None or octets is None or len(body) == octets:
        return body
    if octets > MOST_BYTES:
        raise ValueError(f"the body should have {octets} octets, which is more than any file may have")
    inflater = zlib.decompressobj()
    whole = inflater.decompress(body, octets + 1) if octets >= 0 else b""
    if len(whole) != octets:
        raise ValueError(f"the body should have {octets} octets, and has not")
    return whole


def _copy(good: FetchResult) -> Found | Unavailable:
    if isinstance(good, Unreachable):
        raise TypeError("a failure is not a good copy")
    return good


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _result_values(result: FetchResult) -> Row:
    """Return the values of _RESULT."""
    extras = [name for name, default in _EXTRAS[type(result)] if getattr(result, name) != default]
    more = json.dumps({name: getattr(result, name) for name in extras}) if extras else None
    has = _FIELDS[type(result)]
    named: dict[str, Any] = {name: getattr(result, name) if name in has else None for name in _RESULT}
    named |= {name: _text(named[name]) for name in ("url", "detail") if named[name] is not None}
    named |= {name: _float(named[name]) for name in ("elapsed_s", "max_age_s", "retry_after_s")}
    named |= {"outcome": type(result).__name__.lower(), "reason": result.reason.name, "more": more}
    if isinstance(result, Found):
        body = result.body if result.length < _COMPRESS_FROM else _packed(result.file)
        named |= {"capped": int(result.capped), "octets": result.length, "body": body}
    return tuple(named.values())


def _packed(file: bytes | KeptOctets) -> bytes:
    """Return it compressed. A body that compression would make longer stays as it is."""
    return (KeptOctets(file) if isinstance(file, bytes) else file).packed


def _result(values: Sequence[Any]) -> FetchResult:
    named: dict[str, Any] = dict(zip(_RESULT, values, strict=True))
    kind = _KINDS[named["outcome"]]
    if named["more"] is not None:
        more = json.loads(named["more"])
        named |= {name: more[name] for name, default in _EXTRAS[kind] if name in more or default is MISSING}
    named["reason"] = Reason[named["reason"]]
    if kind is Found:
        whole = inflated(named["body"], named["octets"])
        if not isinstance(whole, bytes):
            raise TypeError("a file without a body")
        # A large body is compressed already: `inflated` has shown that it is the same.
        named["file"] = KeptOctets(whole, named["body"] if len(whole) >= _COMPRESS_FROM else None)
        named["capped"] = bool(named["capped"])
    # Fields that a newer polite added are skipped.
    return kind(**{name: named[name] for name in _FIELDS[kind] if name in named})


def _text(words: str) -> str:
    """Return a text that UTF-8 can encode: a lone surrogate, as in an error's message, is escaped."""
    return words if words.isascii() else words.encode("utf-8", "backslashreplace").decode()


# The first octet of a row as octets; and what stands there for the origin's own robots.txt, as a URL.
_FORMAT = b"1"
_PATH = "/robots.txt"
_USUAL: list[object] = []
_OCTETS = frozenset({"body", "good_body", "memory"})


def encoded(row: Row) -> bytes:
    """Return a row as octets: a line of JSON, in which bodies are lengths, and the bodies.

    A small file should take little: the key has the origin already, most URLs follow from it, and what is unknown stands last.
    """
    origin, *values = row
    bodies = b"".join(each for each in values if isinstance(each, bytes))
    usual = str(origin) + _PATH
    header = [_USUAL if each == usual else len(each) if isinstance(each, bytes) else each for each in values]
    while header and header[-1] is None:
        header.pop()
    return _FORMAT + json.dumps([_checksum(row), *header], separators=(",", ":")).encode() + b"\n" + bodies


def decoded(origin: str, octets: bytes, columns: Sequence[str]) -> Row:
    """Return the row of these columns that `encoded` made octets of. Raises Unreadable."""
    header, _, bodies = octets.partition(b"\n")
    if not header.startswith(_FORMAT):
        raise Unreadable(f"the value of {origin!r} is of another format")
    try:
        checksum, *values = json.loads(header.removeprefix(_FORMAT))
    except (RecursionError, TypeError, ValueError) as error:
        raise Unreadable(f"the value of {origin!r} cannot be read: {error!r}") from error
    row: list[Any] = [origin, *(f"{origin}{_PATH}" if each == _USUAL else each for each in values)]
    row += [None] * (len(columns) - len(row))
    at = 0
    for column, name in enumerate(columns):
        if name in _OCTETS and isinstance(row[column], int):
            row[column], at = bodies[at : at + row[column]], at + row[column]
    # An earlier version, whose rows had no memory, added fewer columns to its checksum.
    if len(row) != len(columns) or checksum not in (_checksum(row), _checksum(row[: 1 + len(values)])):
        raise Unreadable(f"the value of {origin!r} was changed or damaged: its checksum is wrong")
    return tuple(row)


def _checksum(row: Sequence[Any]) -> int:
    """Return the CRC-32 of a row. Version 2 of marshal, which Python 2.5 had, writes each value with its type."""
    try:
        return zlib.crc32(dumps(tuple(row), 2)) or 1
    except ValueError as error:
        raise Unreadable(f"the value of {row[0]!r} cannot be read: {error!r}") from error


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
    return _MARK + encoded(row("", snapshot))


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
    try:
        values = decoded("", octets[len(_MARK) :], COLUMNS)
        found = snapshot(values)
    except Unreadable as error:
        raise CorruptRobots(f"a snapshot of {len(octets)} octets was cut short or changed") from error
    wrong = wrong_field(found)
    if wrong is None and encoded(values) != octets[len(_MARK) :]:
        wrong = "there are octets after its end"
    if wrong is not None:
        raise CorruptRobots(f"a snapshot of {len(octets)} octets makes no sense: {wrong}")
    return found
