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
"""The header fields of a response, as HTTP clients have them: a mapping, or pairs, of str or bytes."""
# Fields that were selected of them, with names in lower case.
Fields = list[tuple[str, object]]

# aiohttp's headers, by the names of their types, since multidict may not be installed. They ignore case.
_FOLDING = ("CIMultiDictProxy", "CIMultiDict")
_FOLDING_MODULES = ("multidict._multidict", "multidict._multidict_py")


class FieldNames:
    """Names of fields, in lower case, that are searched for together.

    Attributes:
        names: The names.
        initials: Their first letters, as they are in names of str and of bytes. They exclude most other names.
    """

    __slots__ = ("initials", "names")

    def __init__(self, *names: str) -> None:
        self.names: frozenset[str] = frozenset(names)
        letters = {letter for name in names for letter in (name[0].lower(), name[0].upper())}
        self.initials: frozenset[str | int] = frozenset(letters) | frozenset(map(ord, letters))


def found(headers: Headers | Fields, wanted: FieldNames) -> Fields:
    """Return the fields with these names, in any case of their names, with the names in lower case.

    Whether a mapping ignores case cannot be determined (it may hold both "server" and "SERVER"), so all its names are compared,
    unless its type is known.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    kind = type(headers)
    if kind.__name__ in _FOLDING and kind.__module__ in _FOLDING_MODULES:
        # Hot path: nearly every response has none of them.
        for name in wanted.names:
            if name in headers:
                return [(each, value) for each in wanted.names for value in headers.getall(each, ())]  # type: ignore[union-attr]
        return []
    initials = wanted.initials
    try:
        # Some mappings do not iterate over their names.
        if hasattr(headers, "keys"):
            if not [name for name in headers.keys() if name[0] in initials]:  # noqa: SIM118
                return []
            pairs: Iterable[tuple[str | bytes, object]] = headers.items()  # type: ignore[union-attr]
        else:
            pairs = headers  # type: ignore[assignment]
        alike = [(name, value) for name, value in pairs if name[0] in initials]
        named = [(text_of(name).lower(), value) for name, value in alike]
    except LookupError:
        # An empty name, which few clients hand on.
        return selected(headers, wanted.names)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return _single([field for field in named if field[0] in wanted.names])


def selected(headers: Headers, wanted: AbstractSet[str]) -> Fields:
    """Return the fields with these names (in lower case), in their order. Pairs that can be read only once are read once.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    try:
        pairs: Iterable[tuple[str | bytes, object]]
        pairs = headers.items() if hasattr(headers, "keys") else headers  # type: ignore[union-attr]
        named = [((key if isinstance(key, str) else text_of(key)).lower(), value) for key, value in pairs]
        fields = [field for field in named if field[0] in wanted]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return _single(fields)


def text_of(value: object) -> str:
    """Return a name or a value as text."""
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)


def _single(fields: Fields) -> Fields:
    """Return one field for each value of those that hold several in a list."""
    return [
        (name, each)
        for name, value in fields
        for each in (value if isinstance(value, list | tuple) else (value,))
    ]


def _neither(headers: object) -> InvalidOption:
    return InvalidOption(f"headers must be a mapping or pairs, got {redact_url(repr(headers))}")
