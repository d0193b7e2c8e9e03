"""Turns what a crawler reports about a response into an Outcome."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from polite.errors import InvalidOption, redact_url
from polite.pacing.outcome import Outcome
from polite.pacing.retry_after import retry_after_s

Headers = (
    Mapping[str, str | float]
    | Mapping[bytes, bytes]
    | Iterable[tuple[str, str | float]]
    | Iterable[tuple[bytes, bytes]]
)

_NAME = "retry-after"
_LENGTH = len(_NAME)
# The limit for seconds in a number, as long as the longest text that is read as one.
_MOST_S = 1e64
# aiohttp's headers, by the names of their types, since multidict may not be installed. They ignore case.
_FOLDING = ("CIMultiDictProxy", "CIMultiDict")
_FOLDING_MODULES = ("multidict._multidict", "multidict._multidict_py")


@lru_cache(maxsize=1_000)
def _ordinary(status: int) -> Outcome:
    """Return the outcome of a status alone, as nearly every response has. Raises InvalidOption."""
    if not 0 <= status <= 999:
        raise _no_status(status)
    return Outcome.of_answer(status)


def reported(status: int, headers: Headers | None, wall: Callable[[], float]) -> Outcome:
    """Return the outcome of a response, with its Retry-After counted from `wall` (Unix time).

    >>> reported(503, {"Retry-After": "120"}, lambda: 0.0).retry_after_s
    120.0

    Raises:
        InvalidOption: The status is no status, or the headers are neither a mapping nor pairs.
    """
    if type(status) is not int:
        status = _number(status)
    outcome = _ordinary(status)
    if headers is None or not (values := _retry_after(headers)):
        return outcome
    waits = [wait_s for value in values if (wait_s := _wait_s(value, wall())) is not None]
    # The longest of several values is the careful choice.
    return Outcome.of_answer(status, max(waits, default=None))


def _number(status: object) -> int:
    """Return a status of a subclass of int, such as http.HTTPStatus. Raises InvalidOption for any other type, and for a bool."""
    if isinstance(status, int) and not isinstance(status, bool):
        return int(status)
    raise _no_status(status)


def _no_status(status: object) -> InvalidOption:
    return InvalidOption(f"report: status must be an integer from 0 to 999, got {status!r}")


def _wait_s(value: object, wall: float) -> float | None:
    """Return the seconds to wait; a number instead of a text counts as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MOST_S else None
    return retry_after_s(_text(value), wall)


def _retry_after(headers: Headers) -> list[object]:
    """Return the values of Retry-After, in any case of its name. Raises InvalidOption.

    Whether a mapping ignores case cannot be determined (it may hold both "server" and "SERVER"), so all its names are compared,
    unless its type is known.
    """
    kind = type(headers)
    if kind.__name__ in _FOLDING and kind.__module__ in _FOLDING_MODULES:
        return list(headers.getall(_NAME, ()))  # type: ignore[union-attr]
    try:
        # The length excludes most names. Some mappings do not iterate over their names.
        if hasattr(headers, "keys"):
            if not [name for name in headers.keys() if len(name) == _LENGTH]:  # noqa: SIM118
                return []
            pairs: Iterable[tuple[str | bytes, object]] = headers.items()  # type: ignore[union-attr]
        else:
            pairs = headers
        alike = [(name, value) for name, value in pairs if len(name) == _LENGTH]
        found = [value for name, value in alike if _text(name).lower() == _NAME]
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidOption(
            f"report: headers must be a mapping or pairs, got {redact_url(repr(headers))}"
        ) from error
    return [each for value in found for each in (value if isinstance(value, list | tuple) else (value,))]


def _text(value: object) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)
