"""`./dev release` ends with 1 and leaves no dist/ unless all is good. `./dev release` runs these tests."""

from pathlib import Path

import pytest

pytest.importorskip("cyclonedx")

from tests.project.release import __main__ as command
from tests.project.release.checklist import LeftOut, Step, StepFailed
from tests.project.release.steps import Release


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The dist/ of an earlier release, in a folder that stands for the project."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "SHA256SUMS").write_text("of an earlier release\n")
    return tmp_path / "dist"


def walked(monkeypatch: pytest.MonkeyPatch, dist: Path, error: BaseException | None) -> int:
    """Walk two steps: one that raises, and one that writes dist/. Return the exit status."""

    def first() -> str:
        if error is not None:
            raise error
        assert not dist.exists()
        return ""

    def second() -> str:
        dist.mkdir()
        (dist / "SHA256SUMS").write_text("of this release\n")
        return ""

    steps = [Step("first", first), Step("dist/", second)]
    monkeypatch.setattr(Release, "steps", lambda *_, final: steps if final else steps[:1])
    return command.main(["uv"])


@pytest.mark.parametrize("error", [None, LeftOut("no compiler")])
def test_a_good_walk_ends_with_0_and_leaves_its_files(
    dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception | None
) -> None:
    assert walked(monkeypatch, dist, error) == 0
    assert (dist / "SHA256SUMS").read_text() == "of this release\n"
    assert "uv publish dist/*.tar.gz" in capsys.readouterr().out


def test_a_walk_that_failed_ends_with_1_and_leaves_no_files(
    dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert walked(monkeypatch, dist, StepFailed("no")) == 1
    assert not dist.exists()
    printed = capsys.readouterr().out
    assert "is not ready: see `failed` above" in printed
    assert "uv publish" not in printed


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()])
def test_a_walk_that_is_interrupted_leaves_no_files(
    dist: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        walked(monkeypatch, dist, error)
    assert not dist.exists()


def test_a_dry_run_prints_nothing_that_publishes(
    dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(Release, "steps", lambda *_, final: asked.append(final) or [])

    assert command.main(["uv", "--dry-run"]) == 0

    assert asked == [False]
    assert "uv publish" not in capsys.readouterr().out
