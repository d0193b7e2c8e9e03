"""Converts snapshots, back-offs and validators to rows of the store's file, and back."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from polite.ports import SavedBackOff
from polite.recrawl import Validators, validators_of
from polite.robots.policy import MOST_BYTES
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, KeptOctets, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot
from polite.stores.database import checksum

Row = tuple[str | bytes | int | float | None, ...]

_RESULT = (
    *("outcome", "reason", "url", "status", "detail", "hops", "elapsed_s", "max_age_s", "retry_after_s"),
    *("capped", "octets", "body", "more"),
)
_TIMES = ("fetched_at", "expires_at", "unreachable_since", "failures", "good_at", "good_until")
COLUMNS = ("origin", *_TIMES, *_RESULT, *(f"good_{name}" for name in _RESULT), "checksum")
BACK_OFF_COLUMNS = ("origin", "since", "until", "because", "checksum")
VALIDATORS_COLUMNS = ("url", "etag", "last_modified", "checksum")
_LATEST = 1 + len(_TIMES)
_GOOD = _LATEST + len(_RESULT)

_KINDS: dict[str, type[FetchResult]] = {
    "found": Found,
    "unavailable": Unavailable,
    "unreachable": Unreachable,
}
# The first octet of a row as octets; and what stands there for the origin's own robots.txt, as a URL.
_FORMAT = b"1"
_PATH = "/robots.txt"
_USUAL: list[object] = []
_BODIES = (COLUMNS.index("body"), COLUMNS.index("good_body"))
# The columns that describe most rows in full: of the good copy, only which one it is.
BRIEF = (*COLUMNS[: _GOOD + 1], "checksum")
_REST: Row = (None,) * (len(COLUMNS) - len(BRIEF))
# If the good copy is the latest result itself, it is not written twice.
_SAME: Row = ("same", *(None for _ in _RESULT[1:]))
_NONE: Row = tuple(None for _ in _RESULT)

# Of 2,000 real files, nine in ten are shorter than a page of the database. Compressing these too would make the file a third
# smaller, take half as long again, and make them unreadable in SQLite's own tools.
_COMPRESS_FROM = 4_096
# The longest reason of a back-off, in characters: a throttle of the user's may write it.
_MAX_REASON = 500
# The checksum of a row that was written before there were checksums.
_NO_CHECKSUM = 0


class Unreadable(Exception):
    """A row was damaged, or not written by polite."""


# Fields with columns under other names: those of the body.
_ELSEWHERE = {"file"}
# Fields without a column of their own are written as JSON into the column `more`, if they differ from their defaults.
_EXTRAS = {
    kind: [(field.name, field.default) for field in fields(kind) if field.name not in {*_RESULT, *_ELSEWHERE}]
    for kind in _KINDS.values()
}


def row(origin: str, snapshot: Snapshot) -> Row:
    """Return the values of COLUMNS."""
    if snapshot.good is None:
        good = _NONE
    elif snapshot.good is snapshot.access or snapshot.good == snapshot.access:
        good = _SAME
    else:
        good = _result_values(snapshot.good)
    values = (
        origin,
        float(snapshot.fetched_at),
        float(snapshot.expires_at),
        _float(snapshot.unreachable_since),
        snapshot.failures,
        _float(snapshot.good_at),
        _float(snapshot.good_until),
        *_result_values(snapshot.access),
        *good,
    )
    return with_checksum(values)


def snapshot(values: Sequence[Any], *, has_checksums: bool = True) -> Snapshot:
    """Return the snapshot in a row of COLUMNS, or in one of BRIEF that `is_whole`.

    Args:
        values: The row.
        has_checksums: Whether each row has a checksum; False for a file that an earlier version created.

    Raises:
        Unreadable: The row is damaged, or its checksum is wrong.
    """
    _require_sound(values, has_checksums)
    try:
        fetched_at, expires_at, since, failures, good_at, good_until = values[1:_LATEST]
        result = _result(values[_LATEST:_GOOD])
        return Snapshot(
            result,
            float(fetched_at),
            float(expires_at),
            good=_good(values[_GOOD:-1], result),
            good_at=None if good_at is None else float(good_at),
            unreachable_since=None if since is None else float(since),
            failures=int(failures),
            good_until=_float(good_until),
        )
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError, zlib.error) as error:
        raise Unreadable(f"the row of {values[0]!r} cannot be read: {error!r}") from error


def is_whole(values: Sequence[Any]) -> bool:
    """Return whether the values of BRIEF describe the row in full: a separate good copy takes further columns."""
    return values[_GOOD] is None or values[_GOOD] == "same"


def back_off_row(origin: str, back_off: SavedBackOff) -> Row:
    """Return the values of BACK_OFF_COLUMNS."""
    because = text(back_off.because[:_MAX_REASON])
    values = (origin, float(back_off.since), float(back_off.until), because)
    return with_checksum(values)


def back_off(values: Sequence[Any], *, has_checksums: bool = True) -> SavedBackOff:
    """Return the back-off in a row of BACK_OFF_COLUMNS. Arguments and errors are as for `snapshot`."""
    _require_sound(values, has_checksums)
    _, since, until, because, _ = values
    if type(since) is not float or type(until) is not float or type(because) is not str:
        raise Unreadable(f"the back-off of {values[0]!r} cannot be read")
    return SavedBackOff(since, until, because)


def validators_row(url: str, validators: Validators) -> Row:
    """Return the values of VALIDATORS_COLUMNS."""
    return with_checksum((url, validators.etag, validators.last_modified))


def validators(values: Sequence[Any], *, has_checksums: bool = True) -> Validators:
    """Return the validators in a row of VALIDATORS_COLUMNS, which always has a checksum. Errors are as for `snapshot`."""
    _require_sound(values, has_checksums=True)
    _, etag, last_modified, _ = values
    # A program that can write the file can write checksums, too: what is sent must be valid as a header's value anyway.
    return validators_of(
        [etag] if type(etag) is str else [], [last_modified] if type(last_modified) is str else []
    )


def with_checksum(values: Row) -> Row:
    """Return the row with its checksum as the last value."""
    return (*values, _checksum(values))


def _require_sound(values: Sequence[Any], has_checksums: bool) -> None:  # noqa: FBT001 - keyword-only where it is public
    if not has_checksums and values[-1] == _NO_CHECKSUM:
        return
    covered = (*values[:-1], *_REST) if len(values) == len(BRIEF) else tuple(values[:-1])
    if values[-1] != _checksum(covered):
        raise Unreadable(f"the row of {values[0]!r} was changed or damaged: its checksum is wrong")


def _checksum(values: Row) -> int:
    """Return the checksum; never 0, which means none. If marshal ever changes, robots.txt files are fetched again."""
    return checksum(values) or 1


def _float(value: float | None) -> float | None:
    """Return a float: a REAL column returns floats, and the checksum must not depend on the type that was saved."""
    return None if value is None else float(value)


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


def _result_values(result: FetchResult) -> Row:
    match result:
        case Found():
            return (
                *("found", result.reason.name, text(result.url), result.status, None, result.hops),
                *(float(result.elapsed_s), _float(result.max_age_s), None, int(result.capped)),
                *(result.length, _compressed(result), _more(result)),
            )
        case Unavailable():
            return (
                *("unavailable", result.reason.name, text(result.url), result.status, None, result.hops),
                *(float(result.elapsed_s), _float(result.max_age_s), None, None, None, None, _more(result)),
            )
        case Unreachable():
            return (
                *("unreachable", result.reason.name, text(result.url), result.status, text(result.detail)),
                *(result.hops, float(result.elapsed_s), None, _float(result.retry_after_s), None, None, None),
                _more(result),
            )


def _result(values: Sequence[Any]) -> FetchResult:
    outcome, reason, url, status, detail, hops, elapsed_s, max_age_s, retry_after_s = values[:9]
    capped, octets, body, extras = values[9:]
    more = {} if extras is None else _extras(_KINDS[outcome], extras)
    why = Reason[reason]
    match outcome:
        case "found":
            whole = inflated(body, octets)
            if not isinstance(whole, bytes):
                raise TypeError("a file without a body")
            # A large body is compressed already: `inflated` has shown that it is the same.
            packed = body if len(whole) >= _COMPRESS_FROM else None
            return Found(
                KeptOctets(whole, packed), status, url, hops, bool(capped), elapsed_s, max_age_s, **more
            )
        case "unavailable":
            return Unavailable(why, url, status, hops, elapsed_s, max_age_s, **more)
        case _:
            return Unreachable(why, url, status, detail, hops, elapsed_s, retry_after_s, **more)


def _good(values: Sequence[Any], result: FetchResult) -> Found | Unavailable | None:
    if values[0] is None:
        return None
    good = result if values[0] == "same" else _result(values)
    if isinstance(good, Unreachable):
        raise TypeError("a failure is not a good copy")
    return good


def _compressed(result: Found) -> bytes:
    """Return the body compressed, if that is shorter."""
    if result.length < _COMPRESS_FROM:
        return result.body
    file = result.file
    return KeptOctets(file).packed if isinstance(file, bytes) else file.packed


def _more(result: FetchResult) -> str | None:
    extras = [name for name, default in _EXTRAS[type(result)] if getattr(result, name) != default]
    return json.dumps({name: getattr(result, name) for name in extras}) if extras else None


def _extras(kind: type[FetchResult], extras: str) -> dict[str, Any]:
    """Return the fields in the column `more`. Fields that a newer polite added are skipped."""
    found = json.loads(extras)
    return {name: found[name] for name, default in _EXTRAS[kind] if name in found or default is MISSING}


def text(words: str) -> str:
    """Return a text that UTF-8 can encode: a lone surrogate, as in an error's message, is escaped."""
    return words if words.isascii() else words.encode("utf-8", "backslashreplace").decode()


def encoded(row: Row) -> bytes:
    """Return a row as octets: a line of JSON, in which bodies are lengths, and the bodies.

    A small file should take little: the key has the origin already, most URLs follow from it, and what is unknown stands last.
    """
    origin, *middle, checksum = row
    bodies = b"".join(each for each in middle if isinstance(each, bytes))
    usual = str(origin) + _PATH
    values = [_USUAL if each == usual else len(each) if isinstance(each, bytes) else each for each in middle]
    while values and values[-1] is None:
        values.pop()
    return _FORMAT + json.dumps([checksum, *values], separators=(",", ":")).encode() + b"\n" + bodies


def decoded(origin: str, value: bytes | None, columns: int) -> Sequence[Any] | None:
    """Return the row in a value. One that cannot be read becomes a row that its reader refuses."""
    if value is None:
        return None
    header, _, bodies = value.partition(b"\n")
    try:
        checksum, *values = json.loads(header.removeprefix(_FORMAT)) if header.startswith(_FORMAT) else (-1,)
    except (RecursionError, TypeError, ValueError):
        checksum, values = -1, []
    row: list[Any] = [origin, *(f"{origin}{_PATH}" if each == _USUAL else each for each in values)]
    row = [*row, *(None for _ in range(columns - 1 - len(row))), checksum]
    at = 0
    for column in _BODIES if columns == len(COLUMNS) == len(row) else ():
        if isinstance(row[column], int):
            row[column], at = bodies[at : at + row[column]], at + row[column]
    return row if len(row) == columns else [origin, *(None for _ in range(columns - 2)), -1]
