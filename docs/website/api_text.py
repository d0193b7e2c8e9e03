"""The API reference as plain Markdown: signatures and docstrings where a page has mkdocstrings' directives."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import griffe

_DIRECTIVE = re.compile(r"^::: (?P<name>[\w.]+)\n(?P<options>(?:[ ]{4}.*\n)*)", re.MULTILINE)


class ApiText:
    """Docstrings of a package, read from its source when the first is needed, without importing it.

    Args:
        folder: The folder that the package is in.
        package: The package's name.
    """

    def __init__(self, folder: Path, package: str) -> None:
        self._folder = folder
        self._name = package

    @cached_property
    def _package(self) -> griffe.Object | griffe.Alias:
        return griffe.load(
            self._name, search_paths=[self._folder], allow_inspection=False, resolve_aliases=True
        )

    def filled(self, text: str) -> str:
        """Return a page with the entry of each name that a directive stands for.

        Raises:
            KeyError: A directive names what the package does not have.
        """
        return _DIRECTIVE.sub(
            lambda match: "\n\n".join(self._entry(match["name"], match["options"])) + "\n", text
        )

    def _entry(self, name: str, options: str) -> Iterator[str]:
        described = self._package[name.partition(".")[2]] if "." in name else self._package
        yield from _described(f"## `{_signature(described, name)}`", described)
        if described.is_class and "members: false" not in options:
            for member, inside in (described.members | described.inherited_members).items():
                if not member.startswith("_") and inside.docstring:
                    yield from _described(f"### `{_signature(inside, member)}`", inside)


def _described(heading: str, described: griffe.Object | griffe.Alias) -> Iterator[str]:
    yield heading
    if described.docstring:
        yield described.docstring.value


def _signature(described: griffe.Object | griffe.Alias, name: str) -> str:
    itself = described.final_target if isinstance(described, griffe.Alias) else described
    if not isinstance(itself, griffe.Function):
        return f"class {name}" if itself.is_class else name
    parameters = itself.signature(return_type=True).partition("(")[2]
    return f"{'async ' if 'async' in itself.labels else ''}{name}({parameters}"
