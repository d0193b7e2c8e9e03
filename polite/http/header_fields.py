"""Reads header fields from what HTTP clients have: a mapping, or pairs, of str or bytes."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from polite.errors import InvalidOption, redact_url

Headers = (
    Mapping[str, str | float]
    | Mapping[bytes, bytes]
    | Iterable[tuple[str, str | float]]
    | Iterable[tuple[bytes, bytes]]
)
# Fields that were selected of them, with names in lower case.
Fields = list[tuple[str, object]]

# aiohttp's headers, by the names of their types, since multidict may not be installed. They ignore case.
_FOLDING = ("CIMultiDictProxy", "CIMultiDict")
_FOLDING_MODULES = ("multidict._multidict", "multidict._multidict_py")


def values_of(headers: Headers | Fields, wanted: str) -> list[object]:
    """Return the values of a field, named in lower case, in any case of its name.

    Whether a mapping ignores case cannot be determined (it may hold both "server" and "SERVER"), so all its names are compared,
    unless its type is known.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    kind = type(headers)
    if kind.__name__ in _FOLDING and kind.__module__ in _FOLDING_MODULES:
        return list(headers.getall(wanted, ()))  # type: ignore[union-attr]
    length = len(wanted)
    try:
        # The length excludes most names. Some mappings do not iterate over their names.
        if hasattr(headers, "keys"):
            if not [name for name in headers.keys() if len(name) == length]:  # noqa: SIM118
                return []
            pairs: Iterable[tuple[str | bytes, object]] = headers.items()  # type: ignore[union-attr]
        else:
            pairs = headers  # type: ignore[assignment]
        alike = [(name, value) for name, value in pairs if len(name) == length]
        found = [value for name, value in alike if text_of(name).lower() == wanted]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return [each for value in found for each in (value if isinstance(value, list | tuple) else (value,))]


def selected(headers: Headers, wanted: AbstractSet[str]) -> Fields:
    """Return the fields with these names (in lower case), in their order. Pairs that can be read only once are read once.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    try:
        pairs: Iterable[tuple[str | bytes, object]]
        pairs = headers.items() if hasattr(headers, "keys") else headers  # type: ignore[union-attr]
        named = [((key if isinstance(key, str) else text_of(key)).lower(), value) for key, value in pairs]
        found = [field for field in named if field[0] in wanted]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return [
        (name, each)
        for name, value in found
        for each in (value if isinstance(value, list | tuple) else (value,))
    ]


def text_of(value: object) -> str:
    """Return a name or a value as text."""
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)


def _neither(headers: object) -> InvalidOption:
    return InvalidOption(f"report: headers must be a mapping or pairs, got {redact_url(repr(headers))}")
