"""A wheel has the files of the tree and nothing else; an sdist has all that is tracked."""

from pathlib import Path

import pytest

from tests.project.release import contents, small_archives
from tests.project.release.checklist import StepFailed
from tests.project.release.small_archives import COMPILED, INFO, METADATA, PAGE, PURE, TREE

TRACKED = {*TREE}
SDIST = "polite_crawl-1.0.0.tar.gz"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return small_archives.tree(tmp_path / "tree")


def test_a_wheel_of_the_tree_is_good(source: Path, tmp_path: Path) -> None:
    wheel = small_archives.wheel(tmp_path / PURE)

    assert contents.check_wheel(wheel, source, TRACKED) == "8 files"
    assert contents.check_metadata(wheel, "1.0.0") == "polite-crawl 1.0.0, MIT, Python >=3.11"
    assert contents.requires(wheel) == ["aiohttp>=3", 'rich; extra == "cli"']


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"polite/url/parse.py": None}, "polite/url/parse.py is not in the wheel"),
        ({"polite/notes.txt": ""}, "polite/notes.txt is foreign to the wheel"),
        ({"tests/test_a.py": ""}, "tests/test_a.py is foreign to the wheel"),
        ({"polite/url/path.so": ""}, "polite/url/path.so is foreign to the wheel"),
        ({"polite/__init__.py": "changed = 1"}, "polite/__init__.py has other octets"),
        ({f"{INFO}licenses/LICENSE": None}, "licenses/LICENSE is missing in .dist-info"),
        ({f"{INFO}licenses/LICENSE": "GPL"}, "its licence is not LICENSE"),
        ({PAGE: None}, "polite.1 is not in the wheel"),
        ({PAGE.replace("polite.1", "other.1"): ""}, "other.1 is foreign to the wheel"),
        ({f"{INFO}odd": ""}, "odd is foreign to .dist-info"),
    ],
)
def test_another_wheel_is_refused(
    source: Path, tmp_path: Path, changes: dict[str, str | None], why: str
) -> None:
    wheel = small_archives.wheel(tmp_path / PURE, changes)

    with pytest.raises(StepFailed, match=why):
        contents.check_wheel(wheel, source, TRACKED)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (f"{INFO}RECORD,,\n", "is not in RECORD"),
        ("gone.py,sha256=x,1\n", "is not in RECORD"),
    ],
)
def test_a_record_that_is_not_whole_is_refused(source: Path, tmp_path: Path, record: str, why: str) -> None:
    wheel = small_archives.wheel(tmp_path / PURE, record=record)

    with pytest.raises(StepFailed, match=why):
        contents.check_wheel(wheel, source, TRACKED)


def test_a_record_with_a_file_too_many_or_a_wrong_digest_is_refused(source: Path, tmp_path: Path) -> None:
    names = [*(name for name in TREE if name.startswith("polite/")), f"{INFO}METADATA", f"{INFO}WHEEL"]
    names += [PAGE, f"{INFO}entry_points.txt", f"{INFO}licenses/LICENSE", f"{INFO}RECORD"]
    rows = "".join(f"{name},sha256=x,1\n" for name in names)

    wrong = small_archives.wheel(tmp_path / PURE, record=rows)
    with pytest.raises(StepFailed, match=r"another digest for polite/__init__\.py: sha256=x"):
        contents.check_wheel(wrong, source, TRACKED)
    more = small_archives.wheel(tmp_path / PURE, record=f"{rows}gone.py,sha256=x,1\n")
    with pytest.raises(StepFailed, match=r"gone\.py is in RECORD only"):
        contents.check_wheel(more, source, TRACKED)


def test_a_compiled_wheel_has_the_sources_and_extensions_of_them(source: Path, tmp_path: Path) -> None:
    extensions = {
        "polite/url/parse.cpython-311-x86_64-linux-gnu.so": "",
        "polite/__init__.cpython-311-x86_64-linux-gnu.so": "",
        "0a1b__mypyc.cpython-311-x86_64-linux-gnu.so": "",
    }
    wheel = small_archives.wheel(tmp_path / COMPILED, extensions)

    assert contents.check_wheel(wheel, source, TRACKED) == "11 files, 3 of them compiled"


@pytest.mark.parametrize(
    "foreign", ["polite/url/other.cpython-311.so", "other.cpython-311.so", "polite/url/a__mypyc.so"]
)
def test_an_extension_without_its_source_is_foreign(source: Path, tmp_path: Path, foreign: str) -> None:
    wheel = small_archives.wheel(tmp_path / COMPILED, {foreign: "", "polite/url/path.so": ""})

    with pytest.raises(StepFailed, match=f"{foreign} is foreign"):
        contents.check_wheel(wheel, source, TRACKED)


def test_a_wheel_for_one_system_has_an_extension(source: Path, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="has no extension module"):
        contents.check_wheel(small_archives.wheel(tmp_path / COMPILED), source, TRACKED)


def test_an_sdist_of_the_tree_is_good(source: Path, tmp_path: Path) -> None:
    sdist = small_archives.sdist(tmp_path / SDIST)

    assert contents.check_sdist(sdist, source, TRACKED) == "6 files, each as committed"
    assert contents.check_metadata(sdist, "1.0.0")


@pytest.mark.parametrize(
    ("changes", "fields", "why"),
    [
        ({"dev": None}, {}, "dev is not in the sdist"),
        ({".env": "SECRET=1"}, {}, ".env is foreign to the sdist"),
        ({"dev": "other"}, {}, "dev has other octets in the sdist"),
        ({}, {"uid": 1000}, "neither a file of root nor a link"),
        ({}, {"gid": 1000}, "neither a file of root nor a link"),
    ],
)
def test_another_sdist_is_refused(
    source: Path, tmp_path: Path, changes: dict[str, str | None], fields: dict[str, int], why: str
) -> None:
    sdist = small_archives.sdist(tmp_path / SDIST, changes, **fields)

    with pytest.raises(StepFailed, match=why):
        contents.check_sdist(sdist, source, TRACKED)


def test_a_link_in_an_sdist_in_the_place_of_a_file_is_refused(source: Path, tmp_path: Path) -> None:
    (source / "link").write_text("a file")
    sdist = small_archives.sdist(tmp_path / SDIST, link="dev")

    with pytest.raises(StepFailed, match="link is neither a file of root nor a link"):
        contents.check_sdist(sdist, source, {*TRACKED, "link"})


@pytest.mark.parametrize(("target", "good"), [("dev", True), ("/etc/passwd", False)])
def test_a_link_in_an_sdist_is_that_of_the_tree(
    source: Path, tmp_path: Path, target: str, good: bool
) -> None:
    (source / "link").symlink_to("dev")
    sdist = small_archives.sdist(tmp_path / SDIST, link=target)

    if good:
        assert contents.check_sdist(sdist, source, {*TRACKED, "link"}) == "7 files, each as committed"
    else:
        with pytest.raises(StepFailed, match="link is neither a file of root nor a link"):
            contents.check_sdist(sdist, source, {*TRACKED, "link"})


def test_a_description_may_have_code_and_links_with_an_address() -> None:
    text = "[a](https://example.com/a)\n\n```python\nrules[0](path)\n```\n[b](b.md#c)\n"

    assert contents.relative_links(text) == {"b.md#c"}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Version: 1.0.0", "Version: 1.0.1", "'version': '1.0.1'"),
        ("Version: 1.0.0", "Version: one", "version"),
        ("License-Expression: MIT", "License-Expression: of our own", "license"),
        ("Framework :: AsyncIO", "Framework :: Politeness", "Framework :: Politeness is no classifier"),
        ("text/markdown", "text/plain", "its description is not README.md"),
        ("# polite\n", "# polite\n[a](docs/a.md)", "docs/a.md in the description of .* leads nowhere"),
        ("# polite\n", "![a](images/a.svg)", "images/a.svg in the description"),
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
