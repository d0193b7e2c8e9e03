"""What is in a wheel and an sdist: all of it, and nothing else."""

import base64
import csv
import re
import tarfile
import zipfile
from collections.abc import Set as AbstractSet
from email import message_from_bytes
from hashlib import sha256
from pathlib import Path, PurePosixPath

from packaging.metadata import InvalidMetadata, Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from trove_classifiers import classifiers

from tests.project.release.checklist import StepFailed

NAME = "polite-crawl"
# The ending of the name of an SBOM, after that of its artefact.
SBOM = ".cdx.json"
_DIST_INFO = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# The endings of extension modules: https://docs.python.org/3/library/importlib.html#importlib.machinery.EXTENSION_SUFFIXES
_COMPILED = (".so", ".pyd")


def check_sdist(path: Path, source: Path, tracked: AbstractSet[str]) -> str:
    """Check that an sdist has every file of the commit as it is there, and only `PKG-INFO` beside."""
    name, version = parse_sdist_filename(path.name)
    top = f"{name.replace('-', '_')}-{version}"
    with tarfile.open(path) as sdist:
        # Read in its order: going back in a compressed file would begin at its start each time.
        found = {each.name.removeprefix(f"{top}/"): (each, _read(sdist, each)) for each in sdist}
    odd = [
        name
        for name, (each, _) in found.items()
        if each.uid or each.gid or not _is_plain(each, source / name)
    ]
    changed = [n for n in {*found} & {*tracked} if found[n][1] not in (None, (source / n).read_bytes())]
    _none("is not in the sdist", {*tracked} - {*found})
    _none("is foreign to the sdist", {*found} - {*tracked} - {"PKG-INFO"})
    _none("is neither a file of root nor a link of the tree", odd)
    _none("has other octets in the sdist", changed)
    return f"{len(found)} files, each as committed"


def _is_plain(member: tarfile.TarInfo, path: Path) -> bool:
    """Whether a member is a file, or the link that is in the tree."""
    return member.isfile() or (
        member.issym() and path.is_symlink() and member.linkname == str(path.readlink())
    )


def _read(sdist: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    """Return the octets of a file, and None for a link, whose target is compared instead."""
    file = sdist.extractfile(member) if member.isfile() else None
    return None if file is None else file.read()


def check_wheel(path: Path, source: Path, tracked: AbstractSet[str]) -> str:
    """Check the files of a wheel, its RECORD and its licence against the tree that it was built from."""
    compiled = not path.name.endswith("-none-any.whl")
    wanted = _wheel_names(path, tracked)
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        info = _info(path)
        own = {name for name in names if name.startswith(info)}
        extensions = {name for name in names if compiled and _is_extension(name, {*wanted})}
        _none("is twice in the wheel", {name for name in names if names.count(name) > 1})
        _none("is not in the wheel", {*wanted} - {*names})
        _none("is foreign to the wheel", {*names} - {*wanted} - own - extensions)
        _none("is missing in .dist-info", _DIST_INFO - {name.removeprefix(info) for name in own})
        _none("is foreign to .dist-info", {name.removeprefix(info) for name in own} - _DIST_INFO)
        _none(
            "has other octets in the wheel",
            (name for name, of in wanted.items() if wheel.read(name) != (source / of).read_bytes()),
        )
        _check_record(wheel, info)
        if wheel.read(f"{info}licenses/LICENSE") != (source / "LICENSE").read_bytes():
            raise StepFailed(f"{path.name}: its licence is not LICENSE")
    if compiled and not extensions:
        raise StepFailed(f"{path.name} has no extension module")
    return f"{len(names)} files" + (f", {len(extensions)} of them compiled" if compiled else "")


def _wheel_names(path: Path, tracked: AbstractSet[str]) -> dict[str, str]:
    """Return where the files of the tree are in a wheel, and which files these are: the package and the man pages."""
    pages = _info(path).replace(".dist-info/", ".data/data/share/man/man1/")
    found = {name: name for name in tracked if name.startswith("polite/")}
    return found | {
        name.replace("docs/man/", pages, 1): name for name in tracked if name.startswith("docs/man/")
    }


def _info(path: Path) -> str:
    name, version, *_ = parse_wheel_filename(path.name)
    return f"{name.replace('-', '_')}-{version}.dist-info/"


def _is_extension(name: str, wanted: AbstractSet[str]) -> bool:
    """Whether this is a compiled module of ours, or the library that mypyc's modules share, at the top of the wheel."""
    path = PurePosixPath(name)
    if path.suffix not in _COMPILED:
        return False
    module = path.name.split(".")[0]
    return (len(path.parts) == 1 and module.endswith("__mypyc")) or any(
        f"{path.parent}/{module}{rest}" in wanted for rest in (".py", "/__init__.py")
    )


def _check_record(wheel: zipfile.ZipFile, info: str) -> None:
    """https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file"""
    rows = {name: digest for name, digest, _ in csv.reader(wheel.read(f"{info}RECORD").decode().splitlines())}
    _none("is not in RECORD", {*wheel.namelist()} - {*rows})
    _none("is in RECORD only", {*rows} - {*wheel.namelist()})
    for name, digest in rows.items():
        hashed = base64.urlsafe_b64encode(sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
        if digest != f"sha256={hashed}" and name != f"{info}RECORD":
            raise StepFailed(f"RECORD has another digest for {name}: {digest}")


def check_metadata(path: Path, version: str) -> str:
    """Check what an index checks when a file is uploaded: the fields, classifiers, and that the text is shown."""
    octets = _metadata(path)
    try:
        metadata = Metadata.from_email(octets, validate=True)
    except ExceptionGroup as errors:
        raise StepFailed("\n".join(str(each) for each in errors.exceptions)) from None
    except InvalidMetadata as error:
        raise StepFailed(str(error)) from None
    found = {"name": metadata.name, "version": str(metadata.version), "licence": metadata.license_expression}
    wanted = {"name": NAME, "version": version, "licence": "MIT"}
    if found != wanted:
        raise StepFailed(f"{path.name} has {found}, where {wanted} is right")
    _none("is no classifier of the index", {*(metadata.classifiers or ())} - {*classifiers})
    if message_from_bytes(octets)["Description-Content-Type"] != "text/markdown" or not metadata.description:
        raise StepFailed(f"{path.name}: its description is not README.md as text/markdown")
    _none(
        f"in the description of {path.name} leads nowhere on an index", relative_links(metadata.description)
    )
    if metadata.license_files != ["LICENSE"] or metadata.requires_python is None:
        raise StepFailed(f"{path.name} names no licence file, or no Python")
    return f"{metadata.name} {metadata.version}, {metadata.license_expression}, Python {metadata.requires_python}"


def relative_links(markdown: str) -> set[str]:
    """Return the relative links and images of a text, outside of its code."""
    prose = _FENCED.sub("", markdown)
    return {link for link in _LINK.findall(prose) if not re.match(r"\w+:", link)}


def requires(path: Path) -> list[str]:
    """Return the lines of Requires-Dist of a wheel or an sdist."""
    return message_from_bytes(_metadata(path)).get_all("Requires-Dist", [])


def _metadata(path: Path) -> bytes:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(f"{_info(path)}METADATA")
    with tarfile.open(path) as sdist:
        return _read(sdist, sdist.getmember(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")) or b""


def _none(what: str, names: object) -> None:
    """Raise StepFailed unless there is no such name."""
    found = sorted(names)  # type: ignore[call-overload]
    if found:
        raise StepFailed("\n".join(f"{name} {what}" for name in found[:20]))
