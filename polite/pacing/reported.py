"""What a crawler reports of an answer, as an outcome."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from polite.errors import InvalidOption
from polite.pacing.outcome import Outcome
from polite.pacing.retry_after import retry_after_s

Headers = (
    Mapping[str, str] | Mapping[bytes, bytes] | Iterable[tuple[str, str]] | Iterable[tuple[bytes, bytes]]
)

# Nearly every answer is one of a few statuses and says nothing more.
_ordinary = lru_cache(maxsize=1_000)(Outcome.of_answer)


def reported(status: int, headers: Headers | None, wall: Callable[[], float]) -> Outcome:
    """The outcome, with its Retry-After counted from `wall` (Unix time). Raises InvalidOption for what is no status."""
    if type(status) is not int or not 0 <= status <= 999:
        raise InvalidOption(f"report(status={status!r}): a whole number from 0 to 999 is needed")
    value = None if headers is None else _retry_after(headers)
    return _ordinary(status) if value is None else Outcome.of_answer(status, retry_after_s(value, wall()))


def _retry_after(headers: Headers) -> str | None:
    """The field in any spelling. The mappings of HTTP clients know all of them; a dict, or pairs, must be looked through."""
    if isinstance(headers, Mapping) and type(headers) is not dict:
        value: object = headers.get("Retry-After")  # type: ignore[call-overload]
    else:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        value = next((value for name, value in pairs if _text(name).lower() == "retry-after"), None)
    return None if value is None else _text(value)


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
