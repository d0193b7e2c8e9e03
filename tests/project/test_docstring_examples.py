"""The examples in the docstrings of public names run, and print what they say."""

import doctest
import inspect
from collections.abc import Iterator

import pytest

import polite


def examples() -> Iterator[doctest.DocTest]:
    """The `>>>` examples of each public name and of its methods. Constants have none of their own."""
    finder = doctest.DocTestFinder(recurse=True, exclude_empty=True)
    for name in polite.__all__:
        value = getattr(polite, name)
        if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
            # A copy of the names for each example: what one defines, no other sees. A module's example has its names, too.
            names = {public: getattr(polite, public) for public in polite.__all__}
            names |= vars(value) if inspect.ismodule(value) else {}
            yield from (found for found in finder.find(value, name, globs=names) if found.examples)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_an_example_prints_what_it_says(example: doctest.DocTest) -> None:
    said: list[str] = []

    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)

    assert result.failed == 0, "".join(said)
