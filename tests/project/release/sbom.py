"""The bill of materials of an artefact: CycloneDX 1.6 as JSON, the same octets each time.

https://cyclonedx.org/docs/1.6/json/
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.lifecycle import LifecyclePhase, PredefinedLifecycle
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tests.project.release.builds import digest
from tests.project.release.checklist import StepFailed
from tests.project.release.contents import NAME, SBOM
from tests.project.release.requirements import Package

_SCHEMA = SchemaVersion.V1_6


def write(
    artefact: Path, version: str, packages: Sequence[Package], direct: Sequence[str], epoch: int
) -> Path:
    """Write the SBOM beside an artefact and return its path.

    Args:
        direct: names of those packages that polite itself needs.
        epoch: Unix time of the release, since the clock of a build must not show.

    Raises:
        StepFailed: the text does not obey the schema.
    """
    text = document(artefact, version, packages, direct, epoch)
    error = JsonStrictValidator(_SCHEMA).validate_str(text)
    if error is not None:
        raise StepFailed(f"the SBOM of {artefact.name} is not valid: {error}")
    path = artefact.with_name(f"{artefact.name}{SBOM}")
    path.write_text(f"{text}\n")
    return path


def document(
    artefact: Path, version: str, packages: Sequence[Package], direct: Sequence[str], epoch: int
) -> str:
    hashed = digest(artefact)
    root = _component(
        Package(NAME, version, tuple(direct), "MIT"),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashed)],
        properties=[Property(name="polite:file", value=artefact.name)],
    )
    components = {package.name: _component(package, scope=ComponentScope.REQUIRED) for package in packages}
    bom = Bom(
        components=components.values(),
        # The same artefact has the same serial number, since a build is to be repeatable.
        serial_number=uuid5(NAMESPACE_URL, f"sha256:{hashed}"),
        metadata=BomMetaData(
            component=root,
            timestamp=datetime.fromtimestamp(epoch, UTC),
            lifecycles=[PredefinedLifecycle(LifecyclePhase.BUILD)],
        ),
    )
    bom.register_dependency(root, [components[name] for name in direct])
    for package in packages:
        bom.register_dependency(components[package.name], [components[name] for name in package.needs])
    return make_outputter(bom, OutputFormat.JSON, _SCHEMA).output_as_string(indent=2)


def _component(package: Package, **fields: object) -> Component:
    purl = PackageURL("pypi", name=package.name, version=package.version)
    # What is no SPDX expression is written as the name of a licence.
    licences = [LicenseFactory().make_from_string(package.licence)] if package.licence else []
    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=licences,
        **fields,  # type: ignore[arg-type]
    )
