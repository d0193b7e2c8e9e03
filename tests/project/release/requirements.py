"""What polite needs at run time, with the pins of constraints.txt, on any Python and system that it supports."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.release.checklist import StepFailed

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SYSTEMS = (
    {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
    {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
)
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s#;]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that is needed.

    Attributes:
        name: the canonical name (PEP 503).
        version: the pin.
        needs: canonical names of the packages that it needs itself, sorted.
        licence: what its metadata says, as a person wrote it; empty if nothing.
    """

    name: str
    version: str
    needs: tuple[str, ...]
    licence: str


@dataclass(frozen=True, slots=True)
class Installed:
    """What the metadata of an installed package says."""

    version: str
    requires: tuple[str, ...]
    licence: str


def installed(name: str) -> Installed:
    """Return what is installed in this environment. Raises StepFailed if it is not."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise StepFailed(
            f"{name} is needed on another Python or system and is not installed here: add it to the group `release`"
        ) from None
    licence = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    return Installed(found.version, tuple(found.requires or ()), licence)


def pins(constraints: str) -> dict[str, str]:
    """Return the version of each name of constraints.txt."""
    matches = (_PIN.match(line) for line in constraints.splitlines())
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def direct(requires: Iterable[str]) -> tuple[str, ...]:
    """Return the names that these lines of Requires-Dist need without an extra, on any supported Python or system."""
    wanted = (Requirement(line) for line in requires)
    return tuple(sorted({canonicalize_name(each.name) for each in wanted if _anywhere(each)}))


def _anywhere(requirement: Requirement) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate(each) for each in _environments())


def _environments() -> Iterator[dict[str, str]]:
    for python, system in product(PYTHONS, _SYSTEMS):
        yield {
            **default_environment(),
            **system,
            "extra": "",
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }


def needed(
    requires: Iterable[str], pinned: Mapping[str, str], look_up: Callable[[str], Installed] = installed
) -> list[Package]:
    """Return the packages that these lines of Requires-Dist need, theirs included, by name.

    Raises StepFailed if one has no pin, or if another version than the pin is installed.
    """
    found: dict[str, Package] = {}
    waiting = [*direct(requires)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _package(name, pinned, look_up(name))
            waiting += found[name].needs
    return [found[name] for name in sorted(found)]


def _package(name: str, pinned: Mapping[str, str], here: Installed) -> Package:
    pin = pinned.get(name)
    if pin is None:
        raise StepFailed(
            f"constraints.txt has no pin for {name}, which polite needs: add {name}=={here.version}"
        )
    if pin != here.version:
        raise StepFailed(f"constraints.txt has {name}=={pin}, and {here.version} is installed")
    return Package(name, pin, direct(here.requires), here.licence)
