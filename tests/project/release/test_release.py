"""`./dev release` refuses what must not be published. It runs these tests itself, as its first step."""

import io
import re
import tarfile
import tomllib
import zipfile
from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pytest

from tests.project.release import contents, version
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


# Small archives.

INFO = "polite_crawl-1.0.0.dist-info/"
PAGE = "polite_crawl-1.0.0.data/data/share/man/man1/polite.1"
PURE = "polite_crawl-1.0.0-py3-none-any.whl"
COMPILED = "polite_crawl-1.0.0-cp311-cp311-linux_x86_64.whl"
SDIST = "polite_crawl-1.0.0.tar.gz"
METADATA = """\
Metadata-Version: 2.4
Name: polite-crawl
Version: 1.0.0
License-Expression: MIT
License-File: LICENSE
Classifier: Framework :: AsyncIO
Requires-Python: >=3.11
Requires-Dist: aiohttp>=3
Description-Content-Type: text/markdown

# polite
"""
TREE = {
    "polite/__init__.py": "",
    "polite/url/parse.py": "path = 1\n",
    "LICENSE": "MIT\n",
    "docs/man/polite.1": ".TH\n",
}
IN_WHEEL = {
    **{name: text for name, text in TREE.items() if name.startswith("polite/")},
    PAGE: ".TH\n",
    **{f"{INFO}{name}": "" for name in ("WHEEL", "RECORD", "entry_points.txt")},
    f"{INFO}METADATA": METADATA,
    f"{INFO}licenses/LICENSE": "MIT\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def wheel(path: Path, changes: dict[str, str | None] | None = None) -> Path:
    """Write a wheel; None leaves a member out."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (IN_WHEEL | (changes or {})).items():
            if text is not None:
                archive.writestr(zipfile.ZipInfo(name), text)
    return path


def sdist(path: Path, changes: dict[str, str | None]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {**TREE, "PKG-INFO": METADATA, **changes}.items():
            if text is not None:
                member = tarfile.TarInfo(f"polite_crawl-1.0.0/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


ARCHIVES = [
    (PURE, {}, None),
    (COMPILED, {"polite/url/parse.cpython-311.so": "", "0a1b__mypyc.cpython-311.so": ""}, None),
    (PURE, {"polite/url/parse.py": None}, "polite/url/parse.py is not in the wheel"),
    (PURE, {"polite/url/parse.so": ""}, "polite/url/parse.so is foreign to the wheel"),
    (PURE, {"polite/__init__.py": "changed = 1"}, "polite/__init__.py has other octets"),
    (PURE, {PAGE: None}, "polite.1 is not in the wheel"),
    (COMPILED, {"polite/url/other.cpython-311.so": ""}, "other.cpython-311.so is foreign"),
    (COMPILED, {}, "has no extension module"),
    (SDIST, {}, None),
    (SDIST, {".env": "SECRET=1"}, ".env is foreign to the sdist"),
    (SDIST, {"LICENSE": "other"}, "LICENSE has other octets in the sdist"),
]


@pytest.mark.parametrize(("name", "changes", "why"), ARCHIVES)
def test_an_archive_has_the_files_of_the_commit_and_nothing_else(source, tmp_path, name, changes, why):
    made = (sdist if name == SDIST else wheel)(tmp_path / name, changes)
    check = contents.check_sdist if name == SDIST else contents.check_wheel

    with nullcontext() if why is None else pytest.raises(StepFailed, match=re.escape(why)):
        assert check(made, source, {*TREE})
        assert contents.requires(made) == ["aiohttp>=3"]
        assert contents.check_metadata(made, "1.0.0") == "polite-crawl 1.0.0, MIT, Python >=3.11"


def test_the_sdist_includes_every_entry_that_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist has no .git to compare with")
    entries = {*run("git", "ls-tree", "--name-only", "HEAD", cwd=ROOT).splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    # hatchling adds these two itself.
    assert {*included, ".gitignore", "pyproject.toml"} == entries
