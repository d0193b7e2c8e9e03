"""Checks of options, and of what a user's part returned.

Each message names the option, what it must be, and the value: "MemoryStore: max_origins must be ...".
"""

import math
import reprlib
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

from polite.errors import InvalidOption

_FINITE = sys.float_info.max
T = TypeVar("T")


@contextmanager
def needing(what: str, extra: str, hint: str = "") -> Iterator[None]:
    """Have a package that cannot be imported in this block be an InvalidOption, which names the extra that brings it."""
    try:
        yield
    except ImportError as error:
        raise InvalidOption(f"{what}: pip install 'polite-crawl[{extra}]'{hint}") from error


def integer(option: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return the value if it is an integer within the limits.

    >>> integer("MemoryStore: max_origins", 0, least=1)
    Traceback (most recent call last):
    ...
    polite.errors.InvalidOption: MemoryStore: max_origins must be an integer >= 1, got 0

    Raises:
        InvalidOption: It is not. A bool is no integer here.
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        limits = f">= {least}" if most is None else f"from {least} to {most}"
        raise InvalidOption(f"must be an integer {limits}, got {value!r}", option=option)
    return value


def number(option: str, value: object, *, least: float = 0.0, most: float = _FINITE) -> float:
    """Return the value as a float if it is a number within the limits.

    Without `most`, it must be finite. With `most=math.inf`, infinity is a value too.

    >>> number("PacingPolicy: min_delay", 2)
    2.0

    Raises:
        InvalidOption: It is not. A bool is no number here.
    """
    if (
        (type(value) is int or type(value) is float)
        and least <= value <= most
        and (value <= _FINITE or value == math.inf)
    ):
        return float(value)
    if most < _FINITE:
        needed = f"a number from {least:g} to {most:g}"
    else:
        needed = f"a {'finite ' if most == _FINITE else ''}number >= {least:g}"
    raise InvalidOption(f"must be {needed}, got {value!r}", option=option)


def instance(option: str, value: object, kind: type[T], must: str = "") -> T:
    """Return the value if it has that type. `must` says what it must be in other words.

    Raises:
        InvalidOption: It has another type.
    """
    if not isinstance(value, kind):
        raise InvalidOption(f"must be {must or f'a {kind.__name__}'}, got {value!r}", option=option)
    return value


def statuses(option: str, value: object, *, least: int, most: int) -> None:
    """Check a set of statuses.

    Raises:
        InvalidOption: It is no set, or one of them is no integer within the limits.
    """
    if not isinstance(value, AbstractSet):
        raise InvalidOption(f"must be a frozenset of statuses, got {value!r}", option=option)
    for status in value:
        integer(option, status, least=least, most=most)


def boolean(option: str, value: object) -> bool:
    """Return the value if it is True or False: a configuration's "no" would count as true.

    Raises:
        InvalidOption: It is not.
    """
    if type(value) is not bool:
        raise InvalidOption(f"must be True or False, got {value!r}", option=option)
    return value


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
        # Neither NaN nor infinite, nor an integer that no float can hold.
        return isinstance(value, int | float) and type(value) is not bool and abs(value) <= _FINITE
    return type(value) is int if kind is int else isinstance(value, kind)
