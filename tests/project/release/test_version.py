"""A version is released once, in the order of versions, with a dated section in the CHANGELOG."""

from datetime import date

import pytest

from tests.project.release import version
from tests.project.release.checklist import StepFailed

TODAY = date(2026, 3, 1)


def changelog(*headings: str, text: str = "- a change") -> str:
    return "# Changelog\n\nThe format.\n\n" + "\n".join(f"## {each}\n\n{text}\n" for each in headings)


@pytest.mark.parametrize("good", ["0.1.0", "1.0.0", "10.20.30", "1.0.0rc1", "2.0.0a12", "2.0.0b0"])
def test_a_version_has_three_numbers_and_may_be_a_pre_release(good: str) -> None:
    assert version.check_form(good) == good


@pytest.mark.parametrize(
    "bad", ["1.0", "v1.0.0", "01.0.0", "1.0.0-rc.1", "1.0.0.dev1", "1.0.0+local", "1.0.0\n", "1.0.1٠", ""]
)
def test_other_versions_are_refused(bad: str) -> None:
    with pytest.raises(StepFailed, match=r"^polite/version\.py: "):
        version.check_form(bad)


@pytest.mark.parametrize("heading", ["0.2.0 - 2026-02-28", "[0.2.0] - 2026-03-01"])
@pytest.mark.parametrize("final", [False, True])
def test_the_topmost_section_is_that_of_the_version_with_its_day(heading: str, final: bool) -> None:
    text = changelog(heading, "0.1.0 - 2026-01-01")

    assert version.check_changelog("0.2.0", text, TODAY, final=final).startswith("0.2.0 of 2026-0")


def test_before_the_release_commit_the_section_may_be_called_unreleased() -> None:
    text = changelog("Unreleased", "0.1.0 - 2026-01-01")

    assert "becomes '## 0.2.0 - 2026-03-01'" in version.check_changelog("0.2.0", text, TODAY, final=False)
    with pytest.raises(StepFailed, match="commit that '## Unreleased' becomes"):
        version.check_changelog("0.2.0", text, TODAY, final=True)


def test_an_empty_section_for_what_comes_next_may_stand_above() -> None:
    text = changelog("0.2.0 - 2026-02-28").replace("## ", "## Unreleased\n\n## ", 1)

    assert version.check_changelog("0.2.0", text, TODAY, final=True) == "0.2.0 of 2026-02-28"


@pytest.mark.parametrize(
    ("now", "text", "why"),
    [
        ("0.1.0", changelog("Unreleased", "0.1.0 - 2026-01-01"), "0.1.0 is released already"),
        ("0.2.0", changelog("0.1.0 - 2026-01-01"), "no section for 0.2.0: its topmost is 0.1.0"),
        ("0.2.0", changelog("0.2.0 - 2026-01-01", "0.10.0 - 2025-01-01"), "0.2.0 is not newer than 0.10.0"),
        # 0.9.0 is the last one in the order of texts.
        (
            "0.9.5",
            changelog("0.9.5 - 2026-01-01", "0.10.0 - 2025-01-01", "0.9.0 - 2024-01-01"),
            "newer than 0.10.0",
        ),
        ("1.0.0rc1", changelog("1.0.0rc1 - 2026-01-01", "1.0.0 - 2025-01-01"), "is not newer than 1.0.0"),
        ("0.2.0", changelog("0.2.0"), "needs a date: 2026-03-01"),
        ("0.2.0", changelog("0.2.0 - soon"), "needs a date"),
        ("0.2.0", changelog("0.2.0 - 2026-03-02"), "dated 2026-03-02, which is in the future"),
        ("0.2.0", changelog("0.2.0 - 2026-02-02", text=""), "the section of 0.2.0 is empty"),
        ("0.2.0", changelog("0.2.0 (2026-02-02)"), "is not of the form"),
        ("0.2.0", changelog("Unreleased", text=""), "says nothing about 0.2.0"),
        ("0.2.0", "# Changelog\n", "says nothing about 0.2.0"),
    ],
)
def test_another_changelog_is_refused(now: str, text: str, why: str) -> None:
    with pytest.raises(StepFailed, match=why):
        version.check_changelog(now, text, TODAY, final=False)


def test_an_old_heading_that_is_no_version_is_passed_over() -> None:
    text = changelog("0.2.0 - 2026-02-01", "Experiments")

    assert version.check_changelog("0.2.0", text, TODAY, final=True)


def test_a_release_candidate_comes_before_its_release() -> None:
    text = changelog("1.0.0 - 2026-02-01", "1.0.0rc1 - 2026-01-01")

    assert version.check_changelog("1.0.0", text, TODAY, final=True)


def test_a_tag_is_used_once() -> None:
    assert version.check_tag("0.2.0", ["v0.1.0"]) == "v0.2.0 is free"
    with pytest.raises(StepFailed, match=r"tag v0\.2\.0 exists"):
        version.check_tag("0.2.0", ["v0.1.0", "v0.2.0"])


def test_a_release_has_recorded_its_ratios() -> None:
    history = [{"version": "0.2.0", "form": form} for form in ("pure", "compiled")]

    assert version.check_history("0.2.0", history, final=True) == "0.2.0: compiled, pure"
    assert "run ./dev bench --record" in version.check_history("0.3.0", history, final=False)
    with pytest.raises(StepFailed, match=r"no record of 0\.3\.0"):
        version.check_history("0.3.0", history, final=True)
