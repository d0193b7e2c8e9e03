"""`./dev release` refuses what must not be published. It runs these tests itself, as its first step."""

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from datetime import date
from io import StringIO
from pathlib import Path

import pytest

from tests.project.release import __main__ as command
from tests.project.release import builds, contents, small_archives, tree, version
from tests.project.release.checklist import LeftOut, Step, StepFailed, run, walk
from tests.project.release.requirements import Installed, direct, needed, pins
from tests.project.release.small_archives import COMPILED, INFO, METADATA, PAGE, PURE, TREE
from tests.project.release.steps import Release

ROOT = Path(__file__).resolve().parents[3]
SDIST = "polite_crawl-1.0.0.tar.gz"
TODAY = date(2026, 3, 1)


def raising(error: BaseException):
    def run_step() -> str:
        raise error

    return run_step


# The walk.


def test_a_walk_tries_what_it_can_and_remembers_a_failure() -> None:
    out = StringIO()
    steps = [
        Step("version", lambda: "1.2.3"),
        Step("build", raising(StepFailed("two\nlines"))),
        Step("files", raising(AssertionError), needs=("build",)),
        Step("compile", raising(LeftOut("no compiler"))),
        Step("try", raising(AssertionError), needs=("compile",)),
    ]

    assert not walk(steps, out)
    assert out.getvalue().splitlines() == [
        "ok        version",
        "          1.2.3",
        "failed    build",
        "          two",
        "          lines",
        "not tried files",
        "          needs: build",
        "left out  compile",
        "          no compiler",
        "not tried try",
        "          needs: compile",
    ]
    assert walk(steps[3:], out)  # what this machine cannot try is no failure


def test_a_command_returns_its_output_or_fails_with_the_end_of_it() -> None:
    assert run(sys.executable, "-c", "print(1)") == "1\n"

    with pytest.raises(StepFailed) as failed:
        run(sys.executable, "-c", "import sys; print(*range(100), sep='\\n'); sys.exit(3)")
    assert str(failed.value).splitlines()[1:] == [str(number) for number in range(70, 100)]


@pytest.mark.parametrize("error", [None, StepFailed("no"), KeyboardInterrupt()])
def test_only_a_good_walk_leaves_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "SHA256SUMS").write_text("of an earlier release\n")
    monkeypatch.setattr(command, "ROOT", tmp_path)

    def publishable() -> str:
        assert not dist.exists()
        dist.mkdir()
        return ""

    steps = [Step("dist/", publishable), Step("first", raising(error) if error else str)]
    monkeypatch.setattr(Release, "steps", lambda *_, final: steps)

    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            command.main(["uv"])
    else:
        assert command.main(["uv"]) == (error is not None)
    assert dist.exists() == ("uv publish dist/" in capsys.readouterr().out) == (error is None)


def test_each_step_needs_earlier_ones_only(tmp_path: Path) -> None:
    before: set[str] = set()
    for step in Release(tmp_path, "uv", tmp_path, tmp_path).steps(final=True):
        assert {*step.needs} <= before, step.name
        before.add(step.name)


# The version.


def changelog(*headings: str, text: str = "- a change") -> str:
    return "# Changelog\n\n" + "\n".join(f"## {each}\n\n{text}\n" for each in headings)


@pytest.mark.parametrize(
    "bad", ["1.0", "v1.0.0", "01.0.0", "1.0.0-rc.1", "1.0.0.dev1", "1.0.0\n", "1.0.1٠", ""]
)
def test_a_version_has_three_numbers_and_may_be_a_pre_release(bad: str) -> None:
    assert [version.check_form(good) for good in ("10.20.30", "1.0.0rc1")]
    with pytest.raises(StepFailed, match=r"^polite/version\.py: "):
        version.check_form(bad)


def test_the_topmost_section_is_that_of_the_version_with_its_day() -> None:
    dated = changelog("[0.2.0] - 2026-02-28", "0.1.0 - 2026-01-01", "Experiments")
    above = dated.replace("## ", "## Unreleased\n\n## ", 1)
    unreleased = changelog("Unreleased", "0.1.0 - 2026-01-01")

    for text in (dated, above):
        assert version.check_changelog("0.2.0", text, TODAY, final=True) == "0.2.0 of 2026-02-28"
    assert "becomes '## 0.2.0 - 2026-03-01'" in version.check_changelog(
        "0.2.0", unreleased, TODAY, final=False
    )
    with pytest.raises(StepFailed, match="commit that '## Unreleased' becomes"):
        version.check_changelog("0.2.0", unreleased, TODAY, final=True)


@pytest.mark.parametrize(
    ("now", "text", "why"),
    [
        ("0.1.0", changelog("Unreleased", "0.1.0 - 2026-01-01"), "0.1.0 is released already"),
        ("0.2.0", changelog("0.1.0 - 2026-01-01"), "no section for 0.2.0: its topmost is 0.1.0"),
        # 0.9.0 is the last one in the order of texts.
        (
            "0.9.5",
            changelog("0.9.5 - 2026-01-01", "0.10.0 - 2025-01-01", "0.9.0 - 2024-01-01"),
            "newer than 0.10.0",
        ),
        ("1.0.0rc1", changelog("1.0.0rc1 - 2026-01-01", "1.0.0 - 2025-01-01"), "is not newer than 1.0.0"),
        ("0.2.0", changelog("0.2.0"), "needs a date: 2026-03-01"),
        ("0.2.0", changelog("0.2.0 - 2026-03-02"), "dated 2026-03-02, which is in the future"),
        ("0.2.0", changelog("0.2.0 - 2026-02-02", text=""), "the section of 0.2.0 is empty"),
        ("0.2.0", changelog("0.2.0 (2026-02-02)"), "is not of the form"),
        ("0.2.0", "# Changelog\n", "says nothing about 0.2.0"),
    ],
)
def test_another_changelog_is_refused(now: str, text: str, why: str) -> None:
    with pytest.raises(StepFailed, match=why):
        version.check_changelog(now, text, TODAY, final=False)


def test_a_tag_is_used_once_and_ratios_are_recorded() -> None:
    history = [{"version": "0.2.0", "form": form} for form in ("pure", "compiled")]

    assert version.check_tag("0.2.0", ["v0.1.0"])
    with pytest.raises(StepFailed, match=r"tag v0\.2\.0 exists"):
        version.check_tag("0.2.0", ["v0.1.0", "v0.2.0"])
    assert version.check_history("0.2.0", history, final=True) == "0.2.0: compiled, pure"
    with pytest.raises(StepFailed, match=r"no record of 0\.3\.0"):
        version.check_history("0.3.0", history, final=True)


# What is built.


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "first", tmp_path / "second"
    for folder in made:
        folder.mkdir()
        small_archives.wheel(folder / PURE)
    return made


def test_two_builds_give_the_same_octets(folders: tuple[Path, Path]) -> None:
    second = folders[1] / PURE
    assert builds.same(*folders) == f"{builds.digest(second)}  {PURE}"

    with second.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(StepFailed, match="the same members in another order or compression"):
        builds.same(*folders)
    small_archives.wheel(second, {"polite/__init__.py": "built_at = 1"})
    with pytest.raises(StepFailed, match=f"{PURE}: two builds differ\n  polite/__init__.py"):
        builds.same(*folders)
    second.unlink()
    with pytest.raises(StepFailed, match=f"one build made {PURE}, the other"):
        builds.same(*folders)


def test_another_time_of_the_same_files_is_a_difference(folders: tuple[Path, Path]) -> None:
    for mtime, folder in enumerate(folders):
        small_archives.sdist(folder / SDIST, mtime=mtime)

    with pytest.raises(StepFailed, match=r"polite_crawl-1\.0\.0/dev"):
        builds.same(*folders)


def test_a_build_sees_no_virtual_environment_and_no_variable_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}/venv/bin:/usr/bin")
    for name in ("PYTHONPATH", "POLITE_COMPILE", "CFLAGS", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "set")

    seen = builds.clean_environment()

    assert seen["PATH"] == "/usr/bin"
    assert "set" not in seen.values()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return small_archives.tree(tmp_path / "tree")


def test_artefacts_of_the_tree_are_good(source: Path, tmp_path: Path) -> None:
    wheel, sdist = small_archives.wheel(tmp_path / PURE), small_archives.sdist(tmp_path / SDIST)
    extensions = ("polite/url/parse", "polite/__init__", "0a1b__mypyc")
    compiled = small_archives.wheel(
        tmp_path / COMPILED, {f"{each}.cpython-311.so": "" for each in extensions}
    )

    assert contents.check_wheel(wheel, source, {*TREE}) == "8 files"
    assert contents.check_wheel(compiled, source, {*TREE}) == "11 files, 3 of them compiled"
    assert contents.check_sdist(sdist, source, {*TREE}) == "6 files, each as committed"
    for artefact in (wheel, sdist):
        assert contents.check_metadata(artefact, "1.0.0") == "polite-crawl 1.0.0, MIT, Python >=3.11"
        assert contents.requires(artefact) == ["aiohttp>=3", 'rich; extra == "cli"']


@pytest.mark.parametrize(
    ("name", "changes", "record", "why"),
    [
        (PURE, {"polite/url/parse.py": None}, None, "polite/url/parse.py is not in the wheel"),
        (PURE, {"tests/test_a.py": ""}, None, "tests/test_a.py is foreign to the wheel"),
        (PURE, {"polite/url/parse.so": ""}, None, "polite/url/parse.so is foreign to the wheel"),
        (PURE, {"polite/__init__.py": "changed = 1"}, None, "polite/__init__.py has other octets"),
        (PURE, {f"{INFO}licenses/LICENSE": "GPL"}, None, "its licence is not LICENSE"),
        (PURE, {PAGE: None}, None, "polite.1 is not in the wheel"),
        (PURE, {f"{INFO}odd": ""}, None, "odd is foreign to .dist-info"),
        (PURE, {}, f"{INFO}RECORD,,\n", "is not in RECORD"),
        (COMPILED, {"polite/url/other.cpython-311.so": ""}, None, "other.cpython-311.so is foreign"),
        (COMPILED, {}, None, "has no extension module"),
    ],
)
def test_another_wheel_is_refused(
    source: Path, tmp_path: Path, name: str, changes: Mapping[str, str | None], record: str | None, why: str
) -> None:
    wheel = small_archives.wheel(tmp_path / name, changes, record)

    with pytest.raises(StepFailed, match=re.escape(why)):
        contents.check_wheel(wheel, source, {*TREE})


def test_a_record_has_the_digest_of_each_file(source: Path, tmp_path: Path) -> None:
    names = [*(name for name in TREE if name.startswith("polite/")), PAGE]
    names += [
        f"{INFO}{name}" for name in ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD")
    ]
    rows = "".join(f"{name},sha256=x,1\n" for name in names)

    for record, why in (
        (rows, "another digest for polite/"),
        (f"{rows}gone.py,sha256=x,1\n", "gone.py is in RECORD only"),
    ):
        with pytest.raises(StepFailed, match=why):
            contents.check_wheel(small_archives.wheel(tmp_path / PURE, record=record), source, {*TREE})


@pytest.mark.parametrize(
    ("changes", "fields", "why"),
    [
        ({"dev": None}, {}, "dev is not in the sdist"),
        ({".env": "SECRET=1"}, {}, ".env is foreign to the sdist"),
        ({"dev": "other"}, {}, "dev has other octets in the sdist"),
        ({}, {"uid": 1000}, "neither a file of root nor a link"),
        ({}, {"link": "/etc/passwd"}, "link is neither a file of root nor a link"),
    ],
)
def test_another_sdist_is_refused(
    source: Path, tmp_path: Path, changes: dict[str, str | None], fields: dict[str, str], why: str
) -> None:
    (source / "link").symlink_to("dev")
    sdist = small_archives.sdist(tmp_path / SDIST, changes, **fields)

    with pytest.raises(StepFailed, match=why):
        contents.check_sdist(sdist, source, {*TREE, "link"} if "link" in fields else {*TREE})


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Version: 1.0.0", "Version: 1.0.1", "'version': '1.0.1'"),
        ("License-Expression: MIT", "License-Expression: of our own", "license"),
        ("Framework :: AsyncIO", "Framework :: Politeness", "Framework :: Politeness is no classifier"),
        ("text/markdown", "text/plain", "its description is not README.md"),
        ("# polite\n", "# polite\n[a](docs/a.md)", "docs/a.md in the description of .* leads nowhere"),
        ("License-File: LICENSE\n", "", "names no licence file"),
        ("Requires-Dist: aiohttp>=3", "Requires-Dist: aiohttp>>3", "aiohttp"),
    ],
)
def test_metadata_that_an_index_would_refuse_are_refused(
    tmp_path: Path, before: str, after: str, why: str
) -> None:
    wheel = small_archives.wheel(tmp_path / PURE, {f"{INFO}METADATA": METADATA.replace(before, after)})

    with pytest.raises(StepFailed, match=why):
        contents.check_metadata(wheel, "1.0.0")


def test_the_sdist_includes_every_entry_that_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist has no .git to compare with")
    entries = {name.partition("/")[0] for name in tree.tracked(ROOT)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    # hatchling adds the last two itself.
    assert {
        *project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"],
        ".gitignore",
        "pyproject.toml",
    } == entries


# What it needs.

INSTALLED = {
    "client": Installed(
        "1.0",
        ("Parser>=2", 'old; python_version < "3.11"', 'typing_extensions; python_version < "3.13"'),
        "MIT",
    ),
    "parser": Installed("2.1", ("client", 'extra-one; extra == "speedups"'), "Apache 2.0"),
    "typing-extensions": Installed("4.0", (), ""),
    "winonly": Installed("3.0", (), ""),
}
PINS = pins(
    "# Pins.\nClient==1.0# a reason\nparser==2.1 # newer ones fail\ntyping_extensions==4.0;python_version < '4'\nfour>=3\n"
)


def test_what_is_needed_is_found_through_all_levels_with_its_pin() -> None:
    found = needed(["client>=1"], PINS, INSTALLED.__getitem__)

    assert [(each.name, each.version, each.needs) for each in found] == [
        ("client", "1.0", ("parser", "typing-extensions")),
        ("parser", "2.1", ("client",)),
        ("typing-extensions", "4.0", ()),
    ]
    assert direct(['rich; extra == "cli"', 'tomli; python_version < "3.11"', "Idna_Two>=3"]) == ("idna-two",)
    assert direct(['winonly; sys_platform == "win32"']) == ("winonly",)
    with pytest.raises(StepFailed, match=r"add winonly==3\.0"):
        needed(["winonly"], PINS, INSTALLED.__getitem__)
    with pytest.raises(StepFailed, match=r"has client==1\.1, and 1\.0 is installed"):
        needed(["client"], {**PINS, "client": "1.1"}, INSTALLED.__getitem__)


def test_an_sbom_names_the_artefact_and_each_package_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx")
    from tests.project.release import sbom

    artefact, packages = (
        small_archives.wheel(tmp_path / PURE),
        needed(["client"], PINS, INSTALLED.__getitem__),
    )

    path = sbom.write(artefact, "1.0.0", packages, ("client",), 1_700_000_000)

    found = json.loads(path.read_text())
    assert [each["purl"] for each in found["components"]] == [
        "pkg:pypi/client@1.0",
        "pkg:pypi/parser@2.1",
        "pkg:pypi/typing-extensions@4.0",
    ]
    needs = {each["ref"]: each.get("dependsOn", []) for each in found["dependencies"]}
    assert needs["pkg:pypi/polite-crawl@1.0.0"] == ["pkg:pypi/client@1.0"]
    assert found["metadata"]["component"]["hashes"] == [
        {"alg": "SHA-256", "content": builds.digest(artefact)}
    ]
    again = sbom.document(artefact, "1.0.0", packages[::-1], ("client",), 1_700_000_000)
    assert f"{again}\n" == path.read_text()
