"""Each public value can be pickled and copied: a crawler passes values to other processes."""

import copy
import dataclasses
import enum
import pickle
import re
import types
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from datetime import time
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import polite
from polite.robots.decision import Decider
from polite.robots.result import KeptOctets
from tests.frameworks.installed import FRAMEWORKS

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
ROBOTS = """\
User-agent: *
Disallow: /private/
Crawl-delay: 2
Request-rate: 1/5
Visit-time: 0600-0845
Content-Signal: search=yes, ai-train=no, use=reference
Content-Usage: /news/ train-ai=n
Clean-param: ref /shop/
License: https://example.com/license.xml
"""


def is_value(found: object) -> bool:
    if not isinstance(found, type):
        return False
    frozen = dataclasses.is_dataclass(found) and found.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return frozen or (issubclass(found, tuple) and hasattr(found, "_fields"))


def value_classes() -> list[type]:
    texts = [page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md"))]
    names = [name for text in texts for name in re.findall(r"^::: (polite\.\S+)$", text, re.MULTILINE)]
    found = map(resolve_name, (name for name in names if not any(f".{each}" in name for each in FRAMEWORKS)))
    return [each for each in found if is_value(each)]


def by_host(target: polite.Target) -> str:
    return target.origin.host


PARSED = polite.parse(ROBOTS)
TARGET = polite.Target.of("https://example.com/private/a")
# Where a type alone does not say which values are valid.
EXAMPLES: Mapping[object, object] = {
    Callable[[polite.Target], str | None]: by_host,
    Decider: PARSED.rules_for("ExampleBot"),
    Hashable: "https://example.com",
    KeptOctets: b"User-agent: *",
    polite.Dialect: polite.Dialect(name="example"),
    polite.Origin: TARGET.origin,
    polite.Target: TARGET,
    polite.UserAgent: polite.UserAgent.of("ExampleBot/1.0"),
    Any: 1,
    time: time(12, 30),
    str: "a",
    bytes: b"a",
    bool: True,
    int: 1,
    float: 1.5,
    type(None): None,
    # What a compiled class has for other types.
    tuple: (),
    type: "a",
}


def example(kind: Any) -> Any:
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {types.UnionType, Union}:
        return example(arguments[0])
    if origin is tuple:
        return tuple(example(each) for each in arguments if each is not ...)
    if origin is Mapping:
        return {example(arguments[0]): example(arguments[1])}
    if origin is Counter:
        return Counter()
    if origin is Literal:
        return arguments[0]
    return next(iter(kind)) if issubclass(kind, enum.Enum) else made(kind)


def made(cls: type) -> Any:
    if cls in EXAMPLES:
        return EXAMPLES[cls]
    hints = get_type_hints(cls)
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        needed = [
            each.name
            for each in dataclasses.fields(cls)
            if each.init and each.default is missing and each.default_factory is missing
        ]
    else:
        needed = [name for name in cls._fields if name not in cls._field_defaults]  # type: ignore[attr-defined]
    return cls(**{name: example(hints[name]) for name in needed})


COPIES = [copy.copy, copy.deepcopy, lambda of: pickle.loads(pickle.dumps(of))]  # noqa: S301 - our own octets


@pytest.mark.parametrize("cls", value_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_value_comes_back_equal(cls: type) -> None:
    value = made(cls)
    for copied in COPIES:
        again = copied(value)
        assert type(again) is cls
        # A Task is equal only to itself.
        assert repr(again) == repr(value) if cls is polite.Task else again == value
