"""An SBOM obeys the schema, names each package with its pin, and is the same each time. `./dev release` runs these tests."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cyclonedx")

from tests.project.release import sbom
from tests.project.release.checklist import StepFailed
from tests.project.release.requirements import Package
from tests.project.release.small_archives import PURE, wheel
from tests.project.release.steps import Release

PACKAGES = [
    Package("idna", "3.20", (), "BSD-3-Clause"),
    Package("typing-extensions", "4.16.0", (), ""),
    Package("yarl", "1.25.1", ("idna",), "Apache 2"),
]


@pytest.fixture
def artefact(tmp_path: Path) -> Path:
    return wheel(tmp_path / PURE)


def written(artefact: Path) -> dict[str, object]:
    path = sbom.write(artefact, "1.0.0", PACKAGES, ("yarl",), 1_700_000_000)
    assert path.name == f"{PURE}.cdx.json"
    return json.loads(path.read_text())


def test_it_names_each_package_with_its_pin_and_licence(artefact: Path) -> None:
    found = written(artefact)

    assert [each["purl"] for each in found["components"]] == [
        "pkg:pypi/idna@3.20",
        "pkg:pypi/typing-extensions@4.16.0",
        "pkg:pypi/yarl@1.25.1",
    ]
    assert [each.get("licenses") for each in found["components"]] == [
        [{"license": {"id": "BSD-3-Clause"}}],
        None,
        [{"license": {"name": "Apache 2"}}],
    ]


def test_it_says_which_package_needs_which(artefact: Path) -> None:
    needs = {each["ref"]: each.get("dependsOn", []) for each in written(artefact)["dependencies"]}

    assert needs["pkg:pypi/polite-crawl@1.0.0"] == ["pkg:pypi/yarl@1.25.1"]
    assert needs["pkg:pypi/yarl@1.25.1"] == ["pkg:pypi/idna@3.20"]


def test_it_names_the_artefact_by_its_digest(artefact: Path) -> None:
    about = written(artefact)["metadata"]["component"]

    assert about["hashes"] == [{"alg": "SHA-256", "content": sbom.digest(artefact)}]
    assert about["properties"] == [{"name": "polite:file", "value": PURE}]


def test_the_same_artefact_has_the_same_octets(artefact: Path) -> None:
    first, second = (
        sbom.document(artefact, "1.0.0", each, ("yarl",), 1) for each in (PACKAGES, PACKAGES[::-1])
    )

    assert first == second
    wheel(artefact, {"polite/__init__.py": "changed = 1"})
    assert sbom.document(artefact, "1.0.0", PACKAGES, ("yarl",), 1) != first


def test_what_does_not_obey_the_schema_is_not_written(
    artefact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sbom, "document", lambda *_: '{"bomFormat": "CycloneDX", "specVersion": "1.6", "odd": 1}'
    )

    with pytest.raises(StepFailed, match="is not valid"):
        sbom.write(artefact, "1.0.0", PACKAGES, ("yarl",), 1)
    assert not artefact.with_name(f"{PURE}.cdx.json").exists()


def test_each_step_needs_earlier_ones_only(tmp_path: Path) -> None:
    before: set[str] = set()
    for step in Release(tmp_path, "uv", tmp_path, tmp_path).steps(final=True):
        assert step.name not in before
        assert {*step.needs} <= before, step.name
        before.add(step.name)
