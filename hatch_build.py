"""The hooks of hatchling: one compiles modules of the wheel with mypyc if POLITE_COMPILE=1, one writes the project's description.

Why not hatch-mypyc: docs/decisions/0008-compiled-wheels.md. Why not hatch-fancy-pypi-readme: docs/decisions/0010.
"""

import ast
import os
import re
from contextlib import chdir
from itertools import accumulate
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# `./dev lint` checks all types. Here, the packages that polite imports may be missing, only what is compiled counts, and the
# arguments that are annotated as `object` are passed on: mypyc checks these at runtime.
_SETTINGS = """[mypy]
ignore_missing_imports = True
follow_imports = silent
disable_error_code = arg-type
"""
# As mypyc itself does.
_OPTIMISATION = "3"

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# A link or an image whose address has no scheme.
_RELATIVE = re.compile(r"!?\[([^\]]+)\]\((?!\w+:)([^)\s]+)\)")
_NOTE = "\nPaths in parentheses are those of files in the source distribution.\n"


class DescriptionHook(MetadataHookInterface):
    """Gives the wheel and the sdist README.md as their description, with paths in the place of relative links."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}


def without_relative_links(text: str) -> str:
    """Return Markdown with text and path in the place of each relative link or image. Code stays as it is."""
    parts = _FENCED.split(text)
    # Every second part is code.
    parts[::2] = [_RELATIVE.sub(r"\1 (`\2`)", part) for part in parts[::2]]
    return "".join(parts) + _NOTE


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the modules of `modules` in pyproject.toml, as one group: calls between them are native.

    The sources stay in the wheel, beside what they were compiled to. Nothing is written to the checkout, where a compiled module
    would be imported instead of its source.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what a build needs besides hatchling: nothing, unless it compiles."""
        return self.config["compile-requires"] if self._compiles() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the results to the wheel."""
        if not self._compiles():
            return
        if version == "editable":
            raise SystemExit(
                "POLITE_COMPILE: an editable install runs the sources as they are: unset it, or build a wheel"
            )
        self._temporary = TemporaryDirectory()
        folder = Path(self._temporary.name)
        modules = self._modules()
        copytree(
            Path(self.root) / "polite",
            folder / "polite",
            ignore=ignore_patterns("__pycache__", "*.so", "*.pyd"),
        )
        for name, functions in self.config["self-checked"].items():
            _accept_objects(folder / name, functions)
        for name in modules:
            source = folder / name
            source.write_bytes(with_causes_set(source.read_bytes()))
        for built in _compiled(modules, folder):
            build_data["force_include"][str(built)] = built.relative_to(folder / "lib").as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled; it is in the wheel."""
        if self._compiles():
            self._temporary.cleanup()

    def _compiles(self) -> bool:
        wanted = os.environ.get("POLITE_COMPILE", "")
        if wanted not in ("", "0", "1"):
            raise SystemExit(f"POLITE_COMPILE must be 1 (compile) or 0, got {wanted!r}")
        return wanted == "1" and self.target_name == "wheel"

    def _modules(self) -> list[str]:
        """Return the paths of the modules, relative to the project."""
        root = Path(self.root)
        missing = [name for name in self.config["modules"] if not (root / name).is_file()]
        if missing:
            raise SystemExit(
                f"pyproject.toml lists modules to compile that do not exist: {', '.join(missing)}"
            )
        return sorted(self.config["modules"])


def _accept_objects(path: Path, functions: dict[str, str]) -> None:
    """Annotate a parameter of each of these functions as `object`, in a copy of the source.

    mypyc checks arguments before the function does. Its TypeError would come instead of ours, which says what to pass.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    annotations = [
        argument.annotation
        for node in ast.walk(ast.parse(b"".join(lines)))
        if isinstance(node, ast.FunctionDef)
        for argument in node.args.args + node.args.kwonlyargs
        if functions.get(node.name) == argument.arg and argument.annotation is not None
    ]
    if len(annotations) < len(functions):
        raise SystemExit(
            f"pyproject.toml: self-checked names a function or parameter that {path.name} has not"
        )
    for found in annotations:
        row, start, end = found.lineno - 1, found.col_offset, found.end_col_offset
        lines[row] = lines[row][:start] + b"object" + lines[row][end:]
    path.write_bytes(b"".join(lines))


def with_causes_set(source: bytes) -> bytes:
    """Return the source with an assignment of the cause in the place of each `raise ... from ...`: mypyc leaves the cause out.

    Lines keep their numbers, which tracebacks name.

    >>> with_causes_set(b"raise KeyError(1) from None")
    b'_raised_1 = KeyError(1); _raised_1.__cause__ = None; raise _raised_1'
    """
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    text = source
    raises = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise) and node.cause]
    # The last first, so that the places of the others stay.
    for node in sorted(raises, key=lambda node: node.lineno, reverse=True):
        (start, end), raised, cause = (_span(part, starts) for part in (node, node.exc, node.cause) if part)
        name = b"_raised_%d" % node.lineno
        steps = name, source[slice(*raised)], name, source[slice(*cause)], name
        text = text[:start] + b"%s = %s; %s.__cause__ = %s; raise %s" % steps + text[end:]
    return text


def _span(node: ast.stmt | ast.expr, starts: list[int]) -> tuple[int, int]:
    """Return where the node begins and ends in a source whose lines start at these octets."""
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _compiled(modules: list[str], folder: Path) -> list[Path]:
    """Compile modules of the package in this folder, and return the files that were made, below `lib`."""
    # These are there only if `dependencies` named them.
    from mypyc.build import mypycify  # noqa: PLC0415
    from setuptools import Distribution  # noqa: PLC0415
    from setuptools.errors import BaseError, CCompilerError  # noqa: PLC0415

    settings = folder / "mypy.ini"
    settings.write_text(_SETTINGS, encoding="utf-8")
    options = [f"--config-file={settings}", f"--cache-dir={folder / 'cache'}"]
    with chdir(folder):
        extensions = mypycify(
            [*options, *modules],
            opt_level=_OPTIMISATION,
            debug_level="0",
            target_dir=str(folder / "c"),
            group_name="polite",
        )
        command = Distribution({"name": "polite", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
        try:
            command.ensure_finalized()
            command.run()
        except (BaseError, CCompilerError) as error:
            raise SystemExit(
                f"POLITE_COMPILE: the C compiler failed: {error}. It needs a C compiler and Python's headers"
                " (on Debian: apt-get install gcc python3-dev). Without POLITE_COMPILE, polite is built as pure Python."
            ) from error
    return sorted(path for path in (folder / "lib").rglob("*") if path.is_file())
