"""A snapshot as a row of the store's file, and a row as a snapshot."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from polite.ports import Hold
from polite.robots.access import Access, Found, Unavailable, Unreachable
from polite.robots.reason import Reason
from polite.robots.snapshot import Snapshot
from polite.stores.checksum import checksum

Row = tuple[str | bytes | int | float | None, ...]

_ANSWER = (
    *("outcome", "reason", "url", "status", "detail", "hops", "elapsed_s", "max_age_s", "retry_after_s"),
    *("capped", "octets", "body", "more"),
)
_TIMES = ("fetched_at", "expires_at", "unreachable_since", "failures", "good_at", "good_until")
COLUMNS = ("origin", *_TIMES, *_ANSWER, *(f"good_{name}" for name in _ANSWER), "checksum")
HOLD_COLUMNS = ("origin", "since", "until", "because", "checksum")
_LATEST = 1 + len(_TIMES)
_GOOD = _LATEST + len(_ANSWER)

_KINDS: dict[str, type[Access]] = {"found": Found, "unavailable": Unavailable, "unreachable": Unreachable}
# The columns that say all about most rows: of the good copy's own, only which it is.
BRIEF = (*COLUMNS[: _GOOD + 1], "checksum")
_REST: Row = (None,) * (len(COLUMNS) - len(BRIEF))
# A good copy that is the latest answer itself is not written twice.
_SAME: Row = ("same", *(None for _ in _ANSWER[1:]))
_NONE: Row = tuple(None for _ in _ANSWER)

# Of 2,000 real files nine in ten are shorter than a page of the database: packing them too would make the whole smaller
# by a third, take half as long again, and hide them from who looks with SQLite's own tools.
_PACKED_FROM = 4_096
# What set a back-off is told in so many characters: a throttle may be anybody's.
_LONGEST_WORDS = 500
# Of a row that was written before there were checksums.
_NO_CHECKSUM = 0


class Unreadable(Exception):
    """A row that no polite has written, or that was changed since."""


# What a kind of answer has beyond the columns goes into one of JSON, where it is not what it mostly is.
_EXTRAS = {
    kind: [(field.name, field.default) for field in fields(kind) if field.name not in _ANSWER]
    for kind in _KINDS.values()
}


def row(origin: str, snapshot: Snapshot) -> Row:
    """Return the values of COLUMNS."""
    if snapshot.good is None:
        good = _NONE
    elif snapshot.good is snapshot.access or snapshot.good == snapshot.access:
        good = _SAME
    else:
        good = _answer(snapshot.good)
    values = (
        origin,
        float(snapshot.fetched_at),
        float(snapshot.expires_at),
        _float(snapshot.unreachable_since),
        snapshot.failures,
        _float(snapshot.good_at),
        _float(snapshot.good_until),
        *_answer(snapshot.access),
        *good,
    )
    return _summed(values)


def snapshot(values: Sequence[Any], *, summed: bool = True) -> Snapshot:
    """Return what a row of COLUMNS says, or one of BRIEF that `is_whole`. Raises Unreadable, also if its checksum is wrong.

    `summed`: each row has a checksum; False for a file that an earlier version made.
    """
    _require_sound(values, summed)
    try:
        fetched_at, expires_at, since, failures, good_at, good_until = values[1:_LATEST]
        access = _access(values[_LATEST:_GOOD])
        return Snapshot(
            access,
            float(fetched_at),
            float(expires_at),
            good=_good(values[_GOOD:-1], access),
            good_at=None if good_at is None else float(good_at),
            unreachable_since=None if since is None else float(since),
            failures=int(failures),
            good_until=_float(good_until),
        )
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise Unreadable(f"the row of {values[0]!r} cannot be read: {error!r}") from error


def is_whole(values: Sequence[Any]) -> bool:
    """Whether the values of BRIEF say all: a good copy with an answer of its own has further columns."""
    return values[_GOOD] is None or values[_GOOD] == "same"


def hold_row(origin: str, hold: Hold) -> Row:
    """Return the values of HOLD_COLUMNS."""
    because = text(hold.because[:_LONGEST_WORDS])
    values = (origin, float(hold.since), float(hold.until), because)
    return _summed(values)


def hold(values: Sequence[Any], *, summed: bool = True) -> Hold:
    """Return what a row of HOLD_COLUMNS says. Raises Unreadable, also if its checksum is wrong."""
    _require_sound(values, summed)
    _, since, until, because, _ = values
    if type(since) is not float or type(until) is not float or type(because) is not str:
        raise Unreadable(f"the back-off of {values[0]!r} cannot be read")
    return Hold(since, until, because)


def _summed(values: Row) -> Row:
    return (*values, _checksum(values))


def _require_sound(values: Sequence[Any], summed: bool) -> None:  # noqa: FBT001 - keyword-only where it is public
    if not summed and values[-1] == _NO_CHECKSUM:
        return
    covered = (*values[:-1], *_REST) if len(values) == len(BRIEF) else tuple(values[:-1])
    if values[-1] != _checksum(covered):
        raise Unreadable(f"the row of {values[0]!r} was changed or damaged: its checksum is wrong")


def _checksum(values: Row) -> int:
    """Were marshal to change one day, the origins would be asked again. 0 stands for none."""
    return checksum(values) or 1


def _float(value: float | None) -> float | None:
    """A column of SQLite's REAL gives back a float, whatever went in: the checksum must not depend on it."""
    return None if value is None else float(value)


def inflated(body: bytes | None, octets: int | None) -> bytes | None:
    """The body's octets, as many as its row says; a body that is shorter than that is packed. Raises ValueError, zlib.error."""
    if body is None or octets is None or len(body) == octets:
        return body
    inflater = zlib.decompressobj()
    whole = inflater.decompress(body, octets + 1) if octets >= 0 else b""
    if len(whole) != octets:
        raise ValueError(f"the body has not the {octets} octets that it should")
    return whole


def _answer(access: Access) -> Row:
    match access:
        case Found():
            return (
                *("found", access.reason.name, text(access.url), access.status, None, access.hops),
                *(float(access.elapsed_s), _float(access.max_age_s), None, int(access.capped)),
                *(len(access.body), _packed(access.body), _more(access)),
            )
        case Unavailable():
            return (
                *("unavailable", access.reason.name, text(access.url), access.status, None, access.hops),
                *(float(access.elapsed_s), _float(access.max_age_s), None, None, None, None, _more(access)),
            )
        case Unreachable():
            return (
                *("unreachable", access.reason.name, text(access.url), access.status, text(access.detail)),
                *(access.hops, float(access.elapsed_s), None, _float(access.retry_after_s), None, None, None),
                _more(access),
            )


def _access(values: Sequence[Any]) -> Access:
    outcome, reason, url, status, detail, hops, elapsed_s, max_age_s, retry_after_s = values[:9]
    capped, octets, body, extras = values[9:]
    more = {} if extras is None else _extras(_KINDS[outcome], extras)
    why = Reason[reason]
    match outcome:
        case "found":
            whole = inflated(body, octets)
            if not isinstance(whole, bytes):
                raise TypeError("a file without a body")
            return Found(whole, status, url, hops, bool(capped), elapsed_s, max_age_s, **more)
        case "unavailable":
            return Unavailable(why, url, status, hops, elapsed_s, max_age_s, **more)
        case _:
            return Unreachable(why, url, status, detail, hops, elapsed_s, retry_after_s, **more)


def _good(values: Sequence[Any], access: Access) -> Found | Unavailable | None:
    if values[0] is None:
        return None
    good = access if values[0] == "same" else _access(values)
    if isinstance(good, Unreachable):
        raise TypeError("a failure is no good copy")
    return good


def _packed(body: bytes) -> bytes:
    """As it is, or shorter."""
    packed = zlib.compress(body, 1) if len(body) >= _PACKED_FROM else body
    return packed if len(packed) < len(body) else body


def _more(access: Access) -> str | None:
    told = [name for name, usual in _EXTRAS[type(access)] if getattr(access, name) != usual]
    return json.dumps({name: getattr(access, name) for name in told}) if told else None


def _extras(kind: type[Access], extras: str) -> dict[str, Any]:
    """What a newer polite knows besides is passed over."""
    told = json.loads(extras)
    return {name: told[name] for name, usual in _EXTRAS[kind] if name in told or usual is MISSING}


def text(words: str) -> str:
    """A lone surrogate, as an error's message may hold, cannot be stored as it is."""
    return words if words.isascii() else words.encode("utf-8", "backslashreplace").decode()
