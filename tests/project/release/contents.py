"""What is in a wheel and an sdist: all of it, and nothing else."""

import re
import tarfile
import zipfile
from collections.abc import Set as AbstractSet
from email import message_from_bytes
from pathlib import Path, PurePosixPath

from packaging.metadata import InvalidMetadata, Metadata
from packaging.utils import parse_wheel_filename
from trove_classifiers import classifiers

from tests.project.release.checklist import StepFailed, require_none

NAME = "polite-crawl"
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


def check_sdist(path: Path, source: Path, tracked: AbstractSet[str]) -> str:
    """Check that an sdist has every file of the commit as it is there, and only `PKG-INFO` beside."""
    top = f"{path.name.removesuffix('.tar.gz')}/"
    with tarfile.open(path) as sdist:
        found = {
            each.name.removeprefix(top): sdist.extractfile(each).read() for each in sdist if each.isfile()
        }  # type: ignore[union-attr]
        require_none("is no file", (each.name for each in sdist if not each.isfile()))
    require_none("is not in the sdist", tracked - {*found})
    require_none("is foreign to the sdist", {*found} - tracked - {"PKG-INFO"})
    changed = (name for name in tracked if found[name] != (source / name).read_bytes())
    require_none("has other octets in the sdist", changed)
    return f"{len(found)} files, each as committed"


def check_wheel(path: Path, source: Path, tracked: AbstractSet[str]) -> str:
    """Check the files of a wheel against the tree that it was built from: the package, its licence and the man pages."""
    info = _info(path)
    pages = info.replace(".dist-info/", ".data/data/share/man/man1/")
    wanted = {name: name for name in tracked if name.startswith("polite/")}
    wanted |= {name.replace("docs/man/", pages): name for name in tracked if name.startswith("docs/man/")}
    wanted[f"{info}licenses/LICENSE"] = "LICENSE"
    compiled = not path.name.endswith("-none-any.whl")
    with zipfile.ZipFile(path) as wheel:
        names = {*wheel.namelist()}
        extensions = {name for name in names if compiled and _is_extension(name, {*wanted})}
        own = {f"{info}{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
        require_none("is not in the wheel", {*wanted} - names)
        require_none("is foreign to the wheel", names - {*wanted} - own - extensions)
        changed = (name for name, of in wanted.items() if wheel.read(name) != (source / of).read_bytes())
        require_none("has other octets in the wheel", changed)
    if compiled and not extensions:
        raise StepFailed(f"{path.name} has no extension module")
    return f"{len(names)} files" + (f", {len(extensions)} of them compiled" if compiled else "")


def _info(path: Path) -> str:
    name, version, *_ = parse_wheel_filename(path.name)
    return f"{name.replace('-', '_')}-{version}.dist-info/"


def _is_extension(name: str, wanted: AbstractSet[str]) -> bool:
    """Whether this is a compiled module of ours, or the library that mypyc's modules share, at the top of the wheel."""
    path = PurePosixPath(name)
    module = path.name.partition(".")[0]
    sources = {f"{path.parent}/{module}.py", f"{path.parent}/{module}/__init__.py"}
    shared = len(path.parts) == 1 and module.endswith("__mypyc")
    return path.suffix in (".so", ".pyd") and (shared or bool(sources & wanted))


def check_metadata(path: Path, version: str) -> str:
    """Check what an index checks when a file is uploaded: the fields, classifiers, and that the text is shown."""
    try:
        metadata = Metadata.from_email(_metadata(path), validate=True)
    except ExceptionGroup as errors:
        raise StepFailed("\n".join(str(each) for each in errors.exceptions)) from None
    except InvalidMetadata as error:
        raise StepFailed(str(error)) from None
    fields = {
        "name": (metadata.name, NAME),
        "version": (str(metadata.version), version),
        "licence": (metadata.license_expression, "MIT"),
        "licence files": (metadata.license_files, ["LICENSE"]),
        "description": (metadata.description_content_type, "text/markdown"),
    }
    if wrong := {name: found for name, (found, wanted) in fields.items() if found != wanted}:
        raise StepFailed(f"{path.name} has {wrong}, where { {n: fields[n][1] for n in wrong} } is right")
    require_none("is no classifier of the index", {*(metadata.classifiers or ())} - {*classifiers})
    links = _LINK.findall(_FENCED.sub("", metadata.description or ""))
    require_none(f"in the description of {path.name} leads nowhere on an index", links)
    return f"{metadata.name} {metadata.version}, {metadata.license_expression}, Python {metadata.requires_python}"


def requires(path: Path) -> list[str]:
    """Return the lines of Requires-Dist of a wheel or an sdist."""
    return message_from_bytes(_metadata(path)).get_all("Requires-Dist", [])


def _metadata(path: Path) -> bytes:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(f"{_info(path)}METADATA")
    with tarfile.open(path) as sdist:
        return sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO").read()
