"""What polite needs at run time, on any Python and system that it supports, as the bill of materials of an artefact.

CycloneDX 1.6 as JSON, the same octets each time: https://cyclonedx.org/docs/1.6/json/
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from pathlib import Path
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.release.builds import digest
from tests.project.release.checklist import StepFailed
from tests.project.release.contents import NAME

# The ending of the name of an SBOM, after that of its artefact.
ENDING = ".cdx.json"
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SYSTEMS = (
    {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
    {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
)
_ENVIRONMENTS = [
    {
        **default_environment(),
        **system,
        "extra": "",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    for python, system in product(_PYTHONS, _SYSTEMS)
]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s#;]+)", re.ASCII | re.MULTILINE)


class Package(NamedTuple):
    """A package that is installed.

    Attributes:
        requires: the lines of its Requires-Dist.
        licence: what its metadata says, as a person wrote it; empty if nothing.
    """

    version: str
    requires: tuple[str, ...]
    licence: str

    @property
    def needs(self) -> list[str]:
        """The names of what it needs without an extra, on any supported Python or system."""
        wanted = [Requirement(line) for line in self.requires]
        return sorted(
            {
                canonicalize_name(each.name)
                for each in wanted
                if each.marker is None or any(each.marker.evaluate(place) for place in _ENVIRONMENTS)
            }
        )


def installed(name: str) -> Package:
    """Return what is installed in this environment. Raises StepFailed if it is not."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise StepFailed(
            f"{name} is needed on another Python or system and is not installed here: add it to the group `release`"
        ) from None
    licence = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    return Package(found.version, tuple(found.requires or ()), licence)


def needed(own, constraints, look_up=installed):
    """Return the packages that a package needs, and that these need. Raises StepFailed if one is not as it is pinned."""
    pins = {canonicalize_name(name): pin for name, pin in _PIN.findall(constraints)}
    found: dict[str, Package] = {}
    waiting = own.needs
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = look_up(name)
            if (version := found[name].version) != pins.get(name):
                raise StepFailed(
                    f"{name} {version} is installed, and constraints.txt has {pins.get(name, 'no pin')}: make it {name}=={version}"
                )
            waiting += found[name].needs
    return dict(sorted(found.items()))


def write(artefact: Path, own: Package, packages: Mapping[str, Package], epoch: int) -> Path:
    """Write the SBOM beside an artefact and return its path. `epoch` is the Unix time of the release.

    Raises StepFailed if the text does not obey the schema.
    """
    # Only the environment of ./dev release has this package.
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentScope, ComponentType
    from cyclonedx.model.lifecycle import LifecyclePhase, PredefinedLifecycle
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from packageurl import PackageURL

    def component(name: str, package: Package, **fields: object) -> Component:
        purl = PackageURL("pypi", name=name, version=package.version)
        return Component(
            type=ComponentType.LIBRARY,
            name=name,
            version=package.version,
            purl=purl,
            bom_ref=purl.to_string(),
            # What is no SPDX expression is written as the name of a licence.
            licenses=[LicenseFactory().make_from_string(package.licence)] if package.licence else [],
            **fields,  # type: ignore[arg-type]
        )

    hashed = digest(artefact)
    root = component(
        NAME,
        own,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashed)],
        properties=[Property(name="polite:file", value=artefact.name)],
    )
    parts = {name: component(name, each, scope=ComponentScope.REQUIRED) for name, each in packages.items()}
    bom = Bom(
        components=parts.values(),
        # The same artefact has the same serial number, since a build is to be repeatable.
        serial_number=uuid5(NAMESPACE_URL, f"sha256:{hashed}"),
        metadata=BomMetaData(
            component=root,
            # The clock of a build must not show.
            timestamp=datetime.fromtimestamp(epoch, UTC),
            lifecycles=[PredefinedLifecycle(LifecyclePhase.BUILD)],
        ),
    )
    bom.register_dependency(root, [parts[name] for name in own.needs])
    for name, each in packages.items():
        bom.register_dependency(parts[name], [parts[needed] for needed in each.needs])
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise StepFailed(f"the SBOM of {artefact.name} is not valid: {error}")
    path = artefact.with_name(f"{artefact.name}{ENDING}")
    path.write_text(f"{text}\n")
    return path
