"""The checkout of a release: what git says of it, and that the sdist takes all of it."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.project.release import tree
from tests.project.release.checklist import StepFailed

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.com")
        monkeypatch.setenv(f"GIT_{role}_DATE", "1700000000 +0000")
    (tmp_path / "a file").write_text("one\n")
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "A file")):
        subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_clean_checkout_names_its_commit(checkout: Path) -> None:
    assert tree.check_clean(checkout).endswith(" A file")
    assert tree.tracked(checkout) == {"a file"}
    assert tree.commit_time(checkout) == 1_700_000_000
    assert tree.tags(checkout) == []


@pytest.mark.parametrize("name", ["a file", "another"])
def test_a_file_that_is_not_committed_is_named(checkout: Path, name: str) -> None:
    (checkout / name).write_text("two\n")

    with pytest.raises(StepFailed, match=name):
        tree.check_clean(checkout)


def test_the_export_has_what_is_committed(checkout: Path) -> None:
    (checkout / "a file").write_text("two\n")

    folder = tree.export(checkout, checkout / "out")

    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a file": "one\n"}


def test_a_folder_that_is_no_checkout_fails(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="not a git repository"):
        tree.export(tmp_path, tmp_path / "out")


def test_the_sdist_includes_every_entry_that_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist has no .git to compare with")
    entries = {name.partition("/")[0] for name in tree.tracked(ROOT)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    # hatchling adds these two itself.
    assert {*included, ".gitignore", "pyproject.toml"} == entries
