"""The examples in the docstrings of pacing, of the ports and of the parts of a throttle run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import polite.pacing

NAMES = [
    "polite.pace",
    "polite.errors",
    "polite.events",
    "polite.options",
    "polite.ports",
    "polite.throttles",
    *(f"polite.pacing.{module.name}" for module in pkgutil.iter_modules(polite.pacing.__path__)),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_module_print_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
