"""Two builds give the same octets, or the members that differ are named."""

import os
from pathlib import Path

import pytest

from tests.project.release import builds, small_archives, tree
from tests.project.release.checklist import StepFailed
from tests.project.release.small_archives import PURE

SDIST = "polite_crawl-1.0.0.tar.gz"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "first", tmp_path / "second"
    for folder in made:
        folder.mkdir()
        small_archives.wheel(folder / PURE)
    return made


def test_equal_builds_are_listed_with_their_digest(folders: tuple[Path, Path]) -> None:
    digest = builds.digest(folders[0] / PURE)

    assert builds.same(*folders) == f"{digest}  {PURE}"


def test_a_file_that_differs_is_named(folders: tuple[Path, Path]) -> None:
    small_archives.wheel(folders[1] / PURE, {"polite/__init__.py": "built_at = 1"})

    with pytest.raises(StepFailed) as failed:
        builds.same(*folders)
    assert f"{PURE}: two builds differ\n  polite/__init__.py\n" in str(failed.value)


def test_another_time_or_mode_of_the_same_files_is_a_difference(folders: tuple[Path, Path]) -> None:
    for folder, fields in zip(folders, ({"mtime": 1}, {"mtime": 2}), strict=True):
        small_archives.sdist(folder / SDIST, **fields)

    with pytest.raises(StepFailed, match="polite_crawl-1.0.0/dev"):
        builds.same(*folders)


def test_another_compression_of_the_same_members_is_a_difference(folders: tuple[Path, Path]) -> None:
    with (folders[1] / PURE).open("ab") as file:
        file.write(b"\0")

    with pytest.raises(StepFailed, match="the same members in another order or compression"):
        builds.same(*folders)


def test_a_build_that_made_less_is_refused(folders: tuple[Path, Path]) -> None:
    (folders[1] / PURE).unlink()

    with pytest.raises(StepFailed, match=f"one build made {PURE}, the other"):
        builds.same(*folders)


def test_only_the_kinds_that_are_asked_for_are_compared(folders: tuple[Path, Path]) -> None:
    small_archives.sdist(folders[1] / SDIST)

    assert PURE in builds.same(*folders, ".whl")


def test_a_build_makes_one_artefact_of_a_kind(folders: tuple[Path, Path]) -> None:
    assert builds.artefact(folders[0], ".whl").name == PURE
    with pytest.raises(StepFailed, match=r"has 0 files \*\.tar\.gz"):
        builds.artefact(folders[0], ".tar.gz")


def test_a_build_sees_no_virtual_environment_and_no_variable_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    monkeypatch.setenv("PATH", os.pathsep.join((f"{tmp_path}/venv/bin", "/usr/bin")))
    for name in ("PYTHONPATH", "POLITE_COMPILE", "POLITE_AGENT", "CFLAGS", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "set")

    seen = builds.clean_environment()

    assert seen["PATH"] == "/usr/bin"
    assert "set" not in seen.values()


def test_a_copy_that_is_made_unlike_has_other_times_and_modes(tmp_path: Path) -> None:
    file = small_archives.tree(tmp_path) / "dev"
    file.chmod(0o755)

    tree.make_unlike(tmp_path)

    assert (file.stat().st_mode & 0o777, file.stat().st_mtime) == (0o700, 946_684_800.0)
