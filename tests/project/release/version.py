"""Whether a version may be released: its form, the CHANGELOG, its tag, and the ratios of its benchmarks."""

import re
from collections.abc import Mapping, Sequence
from datetime import date

from packaging.version import Version

from tests.project.release.checklist import StepFailed

UNRELEASED = "Unreleased"
# Semantic Versioning 2.0.0, items 2 and 9, in the spelling that PEP 440 calls normal.
_FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)(0|[1-9]\d*))?", re.ASCII)
_HEADING = re.compile(r"## \[?([^\]\s]+)\]?(?: - (\S+))?", re.ASCII)


def check_form(version: str) -> str:
    if not _FORM.fullmatch(version):
        raise StepFailed(
            f"polite/version.py: {version!r} is no version of the form 1.2.3, 1.2.3a1, 1.2.3b1 or 1.2.3rc1"
        )
    return version


def check_changelog(version: str, changelog: str, today: date, *, final: bool) -> str:
    """Check that the topmost section is that of `version`, and that no released version is as new.

    Args:
        final: whether to refuse a section that is still called Unreleased.
    """
    # Of each section: version, day or None, text.
    sections: list[tuple[str, str | None, str]] = []
    for part in re.split(r"^(?=## )", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        match = _HEADING.fullmatch(heading.rstrip())
        if match is None:
            raise StepFailed(f"CHANGELOG.md: {heading!r} is not of the form '## 1.2.3 - 2026-01-31'")
        sections.append((match[1], match[2], text.strip()))
    if len(sections) > 1 and sections[0][0] == UNRELEASED and not sections[0][2]:
        del sections[0]
    (name, day, text), *older = sections or [(UNRELEASED, None, "")]
    for released, _, _ in older:
        if _FORM.fullmatch(released) and Version(released) >= Version(version):
            raise StepFailed(f"CHANGELOG.md has {released} as released: raise polite/version.py")
    if name not in (version, UNRELEASED) or not text:
        raise StepFailed(f"CHANGELOG.md says nothing about {version}: its topmost section is {name}")
    if name == UNRELEASED:
        renamed = f"'## {UNRELEASED}' becomes '## {version} - {today.isoformat()}'"
        if final:
            raise StepFailed(f"CHANGELOG.md: commit that {renamed}")
        return f"for the release, {renamed}"
    try:
        dated = date.fromisoformat(day or "")
    except ValueError:
        raise StepFailed(f"CHANGELOG.md: the heading of {name} needs a date: {today}") from None
    if dated > today:
        raise StepFailed(f"CHANGELOG.md: {name} is dated {dated}, which is in the future")
    return f"{name} of {dated}"


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
