"""wrong_field: what is wrong with a value that a user's store or transport returned."""

import reprlib
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_type_hints


def wrong_field(value: object) -> str | None:
    """Return which field of a dataclass, or of one within it, has not the type of its annotation; None if each has."""
    kind: Any = type(value)
    for name, kinds in _fields_of(kind):
        held = getattr(value, name)
        if not any(_is(held, kind) for kind in kinds):
            return f"{type(value).__name__}.{name} is {reprlib.repr(held)}"
        if is_dataclass(held) and (wrong := wrong_field(held)) is not None:
            return wrong
    return None


@lru_cache(maxsize=100)
def _fields_of(kind: type) -> list[tuple[str, tuple[Any, ...]]]:
    hints = get_type_hints(kind)
    return [(each.name, get_args(hints[each.name]) or (hints[each.name],)) for each in fields(kind)]


def _is(value: object, kind: Any) -> bool:  # noqa: ANN401 - an annotation
    if kind is float:
        # NaN equals nothing, itself included.
        return type(value) in (int, float) and value == value
    return type(value) is int if kind is int else isinstance(value, kind)
