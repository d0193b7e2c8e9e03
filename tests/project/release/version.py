"""Whether a version may be released: its form, the CHANGELOG, and tags."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from packaging.version import Version

from tests.project.release.checklist import StepFailed

UNRELEASED = "Unreleased"
# Semantic Versioning 2.0.0, items 2 and 9, in the spelling that PEP 440 calls normal.
_FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)(0|[1-9]\d*))?", re.ASCII)
_HEADING = re.compile(r"## \[?([^\]\s]+)\]?(?: - (\S+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Section:
    """A version's part of the CHANGELOG. `day` is None if the heading has no date."""

    version: str
    day: str | None
    text: str


def check_form(version: str) -> str:
    if not _FORM.fullmatch(version):
        raise StepFailed(
            f"polite/version.py: {version!r} is no version of the form 1.2.3, 1.2.3a1, 1.2.3b1 or 1.2.3rc1"
        )
    return version


def sections(changelog: str) -> list[Section]:
    """Return the sections of a CHANGELOG in its order. Raises StepFailed for a heading that is not understood."""
    found: list[Section] = []
    for part in re.split(r"^(?=## )", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        match = _HEADING.fullmatch(heading.rstrip())
        if match is None:
            raise StepFailed(f"CHANGELOG.md: {heading!r} is not of the form '## 1.2.3 - 2026-01-31'")
        found.append(Section(match[1], match[2], text.strip()))
    return found


def check_changelog(version: str, changelog: str, today: date, *, final: bool) -> str:
    """Check that the topmost section is that of `version`, and that no released version is as new.

    Args:
        final: whether to refuse a section that is still called Unreleased.
    """
    top, *older = sections(changelog) or [Section(UNRELEASED, None, "")]
    if top.version == UNRELEASED and not top.text and older:
        top, *older = older
    if any(each.version == version for each in older):
        raise StepFailed(f"CHANGELOG.md: {version} is released already: raise polite/version.py")
    _check_newer(version, [each.version for each in older])
    if top.version == UNRELEASED:
        return _unreleased(version, top, today, final=final)
    if top.version != version:
        raise StepFailed(f"CHANGELOG.md has no section for {version}: its topmost is {top.version}")
    if not top.text:
        raise StepFailed(f"CHANGELOG.md: the section of {version} is empty")
    return _dated(top, today)


def _unreleased(version: str, top: Section, today: date, *, final: bool) -> str:
    renamed = f"'## {UNRELEASED}' becomes '## {version} - {today.isoformat()}'"
    if not top.text:
        raise StepFailed(f"CHANGELOG.md says nothing about {version}")
    if final:
        raise StepFailed(f"CHANGELOG.md: commit that {renamed}")
    return f"for the release, {renamed}"


def _dated(top: Section, today: date) -> str:
    try:
        day = date.fromisoformat(top.day or "")
    except ValueError:
        raise StepFailed(f"CHANGELOG.md: the heading of {top.version} needs a date: {today}") from None
    if day > today:
        raise StepFailed(f"CHANGELOG.md: {top.version} is dated {day}, which is in the future")
    return f"{top.version} of {day}"


def _check_newer(version: str, released: Sequence[str]) -> None:
    newest = max((each for each in released if _FORM.fullmatch(each)), key=Version, default=None)
    if newest is not None and Version(version) <= Version(newest):
        raise StepFailed(
            f"polite/version.py: {version} is not newer than {newest}, which CHANGELOG.md has as released"
        )


def check_tag(version: str, tags: Sequence[str]) -> str:
    if f"v{version}" in tags:
        raise StepFailed(f"the tag v{version} exists already: raise polite/version.py")
    return f"v{version} is free"


def check_history(version: str, history: Sequence[Mapping[str, object]], *, final: bool) -> str:
    """Check that benchmarks/history.json has ratios of this version, so that the next release is compared with it."""
    forms = sorted(str(record["form"]) for record in history if record["version"] == version)
    if not forms and final:
        raise StepFailed(f"benchmarks/history.json has no record of {version}: run ./dev bench --record")
    return f"{version}: {', '.join(forms)}" if forms else "for the release, run ./dev bench --record"
