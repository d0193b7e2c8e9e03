"""The documentation site: every page has a place, links lead somewhere on it too, and nothing is loaded from elsewhere."""

from pathlib import Path

import pytest

from docs.website.builder import Site
from docs.website.checks import faults
from docs.website.sources import Sources
from docs.website.staging import LinkError, stage, staged

ROOT = Path(__file__).resolve().parents[2]
SITE = Site(ROOT, ROOT / "out" / "site")
POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """A checkout with two pages, a picture and an example."""
    for name, text in {
        "README.md": "# Home\n\nA [page](docs/how-to/wait.md#long).\n",
        "CHANGELOG.md": "# Changes\n",
        "CONTRIBUTING.md": "# Contributing\n",
        "SECURITY.md": "# Security\n",
        "LICENSE": "Free\n",
        "docs/how-to/wait.md": "# Wait\n\n[Home](../../README.md)\n",
        "docs/images/seen.svg": "<svg/>",
        "docs/examples/small.py": '"""A small crawler.\n\nMore.\n"""\n',
        "polite/gate.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Sources(tmp_path)


def test_every_page_of_docs_is_in_the_navigation_once() -> None:
    sources = SITE.sources

    shown = list(SITE.navigation(sources).pages())

    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(shown)
    assert {page for page in shown if shown.count(page) > 1} == set()
    assert {"index.md", "changelog.md", "examples/many_machines.py.md"} <= set(shown)


def test_every_link_of_every_page_leads_to_a_page_of_the_site(tmp_path: Path) -> None:
    assert stage(SITE.sources, tmp_path) == []


@pytest.mark.parametrize(
    ("written", "on_the_site"),
    [
        ("[home](../../README.md#top)", "[home](../index.md#top)"),
        ("![seen](../images/seen.svg)", "![seen](../images/seen.svg)"),
        ("[a](../how-to) [b](#here)", "[a](wait.md) [b](#here)"),
        ("[code](../examples/small.py)", "[code](../examples/small.py.md)"),
        ("[far](https://example.com/x.md)", "[far](https://example.com/x.md)"),
        ("`[x](gone.md)` and ``a ` [x](gone.md)``", "`[x](gone.md)` and ``a ` [x](gone.md)``"),
        ("<!-- tests -->", ""),
        ("~~~\n```\n[x](gone.md)\n~~~\n[y](wait.md)", "~~~\n```\n[x](gone.md)\n~~~\n[y](wait.md)"),
    ],
)
def test_links_lead_to_the_same_page_on_the_site(sources: Sources, written: str, on_the_site: str) -> None:
    (sources.root / "docs/how-to/wait.md").write_text(f"# Wait\n{written}\nlast\n")

    assert staged(sources, "docs/how-to/wait.md") == f"# Wait\n{on_the_site}\nlast\n"


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("gone.md", "docs/how-to/gone.md does not exist"),
        ("../../polite/gate.py", "polite/gate.py is not on the site"),
    ],
)
def test_a_link_that_leads_nowhere_is_named_with_its_file_and_line(
    sources: Sources, link: str, reason: str
) -> None:
    (sources.root / "docs/how-to/wait.md").write_text(f"# Wait\n\n[x]({link})\n")

    with pytest.raises(LinkError) as error:
        staged(sources, "docs/how-to/wait.md")

    assert str(error.value) == f"docs/how-to/wait.md:3: link to {link}: {reason}"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            '<p id="here"><a href="https://example.com/">x</a><a href="#here">y</a><img src="data:,">',
            None,
        ),
        ('<a href="gone.html">x</a>', "links to gone.html, which does not exist"),
        ('<a href="page.html#no">x</a>', "links to page.html#no, whose anchor does not exist"),
        ('<img src="https://x.example/p.png">', "loads https://x.example/p.png from another host"),
        ('<link rel="preconnect" href="https://x.example">', "loads https://x.example from another host"),
        ('<p style="background:url(//x.example/p)">', "loads //x.example/p from another host"),
        ("<style>a{b:url('//x.example/p')}</style>", "loads //x.example/p from another host"),
    ],
)
def test_a_fault_of_the_built_site_is_found(tmp_path: Path, body: str, fault: str | None) -> None:
    (tmp_path / "page.html").write_text(POLICY + body)

    assert list(faults(tmp_path)) == ([] if fault is None else [f"page.html: {fault}"])
