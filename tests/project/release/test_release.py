"""`./dev release` refuses what must not be published. It runs these tests itself, as its first step."""

import shutil
import tomllib
from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pytest

from tests.project.release import version
from tests.project.release.checklist import StepFailed, run

ROOT = Path(__file__).resolve().parents[3]


def changelog(*headings: str, text: str = "- a change") -> str:
    return "# Changelog\n\n" + "\n".join(f"## {each}\n\n{text}\n" for each in headings)


@pytest.mark.parametrize(
    ("now", "text", "why"),
    [
        ("0.2.0", changelog("[0.2.0] - 2026-02-28", "0.1.0 - 2026-01-01", "Experiments"), None),
        ("0.2.0", "# Changes\n## Unreleased\n\n## 0.2.0 - 2026-02-28\n- a", None),
        ("0.2.0", changelog("Unreleased", "0.1.0 - 2026-01-01"), "commit that '## Unreleased' becomes"),
        ("0.1.0", changelog("Unreleased", "0.1.0 - 2026-01-01"), "has 0.1.0 as released"),
        # 0.9.0 is the last one in the order of texts.
        ("0.9.5", changelog("0.9.5", "0.10.0 - 2025-01-01", "0.9.0 - 2024-01-01"), "has 0.10.0"),
        ("0.2.0", changelog("0.2.0"), "needs a date: 2026-03-01"),
        ("0.2.0", changelog("0.2.0 - 2026-03-02"), "in the future"),
        ("0.2.0", changelog("0.2.0 - 2026-02-02", text=""), "nothing about 0.2.0"),
        ("0.2.0", changelog("0.2.0 (2026-02-02)"), "is not of the form"),
    ],
)
def test_the_changelog_has_the_version_with_its_day(now: str, text: str, why: str | None) -> None:
    with nullcontext() if why is None else pytest.raises(StepFailed, match=why):
        assert version.check_changelog(now, text, date(2026, 3, 1), final=True) == "0.2.0 of 2026-02-28"


def test_the_sdist_includes_every_entry_that_is_tracked() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("an sdist has no .git to compare with, or there is no git")
    entries = {*run("git", "ls-tree", "--name-only", "HEAD", cwd=ROOT).splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    # hatchling adds these two itself.
    assert {*included, ".gitignore", "pyproject.toml"} == entries
