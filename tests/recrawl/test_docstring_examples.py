"""The examples in the docstrings of recrawl and of HTTP's fields run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import polite.http
import polite.recrawl

NAMES = [
    f"{package.__name__}.{module.name}"
    for package in (polite.http, polite.recrawl)
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_module_print_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
