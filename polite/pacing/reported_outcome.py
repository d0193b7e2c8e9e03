"""What a crawler reports of an answer, as an outcome."""

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
# Seconds in a number: a longer text is not read as a number either.
_MOST_S = 1e64
# aiohttp's headers, by the names of their types, since multidict may not be there. They know a name in any spelling.
_FOLDING = ("CIMultiDictProxy", "CIMultiDict")
_FOLDING_MODULES = ("multidict._multidict", "multidict._multidict_py")


@lru_cache(maxsize=1_000)
def _ordinary(status: int) -> Outcome:
    """Nearly every answer is one of a few statuses and says nothing more. Raises InvalidOption."""
    if not 0 <= status <= 999:
        raise _no_status(status)
    return Outcome.of_answer(status)


def reported(status: int, headers: Headers | None, wall: Callable[[], float]) -> Outcome:
    """The outcome, with its Retry-After counted from `wall` (Unix time). Raises InvalidOption for what is neither."""
    if type(status) is not int:
        status = _number(status)
    outcome = _ordinary(status)
    if headers is None or not (values := _retry_after(headers)):
        return outcome
    waits = [wait_s for value in values if (wait_s := _wait_s(value, wall())) is not None]
    # Of several the longest is the careful one.
    return Outcome.of_answer(status, max(waits, default=None))


def _number(status: object) -> int:
    """A status of a subclass, such as http.HTTPStatus. Raises InvalidOption for a bool, and for what is no number."""
    if isinstance(status, int) and not isinstance(status, bool):
        return int(status)
    raise _no_status(status)


def _no_status(status: object) -> InvalidOption:
    return InvalidOption(f"report(status={status!r}): a whole number from 0 to 999 is needed")


def _wait_s(value: object, wall: float) -> float | None:
    """Seconds to wait; a number in place of a text counts as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MOST_S else None
    return retry_after_s(_text(value), wall)


def _retry_after(headers: Headers) -> list[object]:
    """The field's values, in any spelling of its name. Raises InvalidOption for what are no headers.

    Whether a mapping tells "retry-after" from "Retry-After" cannot be asked (it may hold both "server" and "SERVER"): its names are
    looked through, unless its type is known.
    """
    kind = type(headers)
    if kind.__name__ in _FOLDING and kind.__module__ in _FOLDING_MODULES:
        return list(headers.getall(_NAME, ()))  # type: ignore[union-attr]
    try:
        # Most names are told apart by their length. Not all that has names iterates over them.
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
            f"report(headers={redact_url(repr(headers))}): a mapping or pairs are needed"
        ) from error
    return [each for value in found for each in (value if isinstance(value, list | tuple) else (value,))]


def _text(value: object) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)
