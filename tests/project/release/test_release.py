"""`./dev release` refuses what must not be published. It runs these tests itself, as its first step."""

import io
import re
import sys
import tarfile
import tomllib
import zipfile
from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pytest

from tests.project.release import contents, sbom, version
from tests.project.release.checklist import LeftOut, Step, StepFailed, run, walk

ROOT = Path(__file__).resolve().parents[3]


def test_a_walk_tries_what_it_can_and_remembers_a_failure(capsys) -> None:
    def fail(error: Exception) -> str:
        raise error

    steps = [
        Step("version", lambda: "1.2.3"),
        Step("build", lambda: fail(StepFailed("two\nlines"))),
        Step("files", lambda: fail(AssertionError()), needs=("build",)),
        Step("compile", lambda: fail(LeftOut("no compiler"))),
        Step("try", lambda: fail(AssertionError()), needs=("compile",)),
    ]

    assert not walk(steps, sys.stdout)
    words = [line[:9].strip() for line in capsys.readouterr().out.splitlines()]
    assert [word for word in words if word] == ["ok", "failed", "not tried", "left out", "not tried"]
    assert walk(steps[3:], sys.stdout)  # what this machine cannot try is no failure


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


@pytest.mark.parametrize("bad", ["1.0", "v1.0.0", "01.0.0", "1.0.0-rc.1", "1.0.0\n", "1.0.1٠"])
def test_a_version_has_three_numbers_a_tag_is_free_and_ratios_are_recorded(bad: str) -> None:
    assert version.check_form("1.0.0rc1") + version.check_tag("0.2.0", ["v0.1.0"])
    assert version.check_history("1", [{"version": "1", "form": "pure"}], final=True) == "1: pure"
    for refused in (
        lambda: version.check_form(bad),
        lambda: version.check_tag("0.2.0", ["v0.2.0"]),
        lambda: version.check_history("2", [{"version": "1", "form": "pure"}], final=True),
    ):
        with pytest.raises(StepFailed):
            refused()


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


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Version: 1.0.0", "Version: 1.0.1", "'version': '1.0.1'"),
        ("License-Expression: MIT", "License-Expression: of our own", "license"),
        ("Framework :: AsyncIO", "Framework :: Politeness", "Framework :: Politeness is no classifier"),
        ("# polite\n", "# polite\n[a](docs/a.md)", "docs/a.md in the description of .* leads nowhere"),
    ],
)
def test_metadata_that_an_index_would_refuse_are_refused(tmp_path, before, after, why) -> None:
    made = wheel(tmp_path / PURE, {f"{INFO}METADATA": METADATA.replace(before, after)})

    with pytest.raises(StepFailed, match=why):
        contents.check_metadata(made, "1.0.0")


def test_the_sdist_includes_every_entry_that_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist has no .git to compare with")
    entries = {*run("git", "ls-tree", "--name-only", "HEAD", cwd=ROOT).splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    # hatchling adds these two itself.
    assert {*included, ".gitignore", "pyproject.toml"} == entries


INSTALLED = {
    "client": sbom.Package("1.0", ("Parser>=2", 'old; python_version < "3.11"', "winonly"), "MIT"),
    "parser": sbom.Package("2.1", ("client", 'extra-one; extra == "speedups"'), "Apache 2.0"),
    "winonly": sbom.Package("3.0", (), ""),
}
PINS = "# Pins.\nClient==1.0# a reason\nparser==2.1 # newer ones fail\nwinonly==3.0;python_version < '4'\n"
OWN = sbom.Package("1.0.0", ('client; sys_platform == "win32"', 'rich; extra == "cli"'), "MIT")


def test_what_is_needed_is_found_through_all_levels_as_it_is_pinned() -> None:
    assert [*sbom.needed(OWN, PINS, INSTALLED.__getitem__)] == ["client", "parser", "winonly"]
    for pins in (PINS.replace("2.1", "2.0"), PINS.replace("winonly", "other")):
        with pytest.raises(StepFailed, match=r"make it \w+==\d\.\d"):
            sbom.needed(OWN, pins, INSTALLED.__getitem__)
