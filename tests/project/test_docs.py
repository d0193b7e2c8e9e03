"""README and docs are true: every block is run as a reader would, and prints what the page says; the reference is the code's."""

import argparse
import re
import ssl
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import trustme

import polite
from docs.website.builder import Site
from docs.website.staging import stage
from polite.cli.parser import parser
from polite.version import __version__
from tests.frameworks.installed import FRAMEWORKS
from tests.project.page_reader import Reader
from tests.project.page_web import PageWeb

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext, str]:
    authority = trustme.CA()
    file = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(file)
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("example.com").configure_cert(server)
    authority.configure_trust(client)
    return server, client, str(file)


@pytest.fixture
def web(tls, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    web = PageWeb(*tls)
    web.replace(monkeypatch)
    return web


@pytest.fixture
def reader(web: PageWeb, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reader:
    return Reader(web, monkeypatch, capsys)


@pytest.mark.slow("runs the simulation", rows=["simulation.md"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(page: Path, reader: Reader) -> None:
    if page.stem in FRAMEWORKS:
        pytest.skip(f"./dev frameworks {page.stem} runs this page")
    reader.read(page)


def test_every_file_that_a_page_names_is_there() -> None:
    assert [
        (page.name, file)
        for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
        for file in re.findall(r"\b((?:polite|tests|docs|benchmarks)/[\w./-]*\w)", page.read_text())
        if not (ROOT / file).exists()
    ] == []


def rows(page: str, heading: str = "") -> dict[str, list[str]]:
    """The table rows below a heading, up to the next: the first cell without its backticks, and the other cells."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    section = text.partition(f"\n## {heading}\n")[2] if heading else text
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {first.strip("`").replace("\\|", "|"): rest for first, *rest in cells}


def written(default: Any) -> str:
    match default:
        case Enum():
            return f"`{type(default).__name__}.{default.name}`"
        case polite.Dialect():
            return f"`{default.name.upper()}`"
        case _:
            return f"`{getattr(default, '__name__', repr(default))}`"


POLICIES = [
    polite.RobotsPolicy,
    polite.PacingPolicy,
    polite.FetchPolicy,
    polite.RecrawlPolicy,
    polite.sitemaps.SitemapPolicy,
]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_reference_has_every_field_of_a_policy_with_its_default_and_its_limits(policy: Any) -> None:
    page = "sitemaps.md" if policy is polite.sitemaps.SitemapPolicy else "gate.md"
    documented = rows(page, f"`{policy.__name__}`")

    assert {field: cells[1] for field, cells in documented.items()} == {
        field.name: written(field.default) for field in fields(policy) if field.init
    }
    for field, (_, default, limits, _) in documented.items():
        for bound, beyond in zip(re.findall(r"(?<![`\w])[\d.]+", limits), (-1, 1), strict=False):
            if not default.startswith("`frozenset("):
                kind = float if "." in default else int
                policy(**{field: kind(float(bound))})
                with pytest.raises(polite.InvalidOption, match=field):
                    policy(**{field: kind(float(bound)) + beyond * (1 if kind is int else 1e-4)})


def in_words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None | () | frozenset() if not value:
            return "none"
        case (str(), *_):
            return ", ".join(value)
        case tuple():
            return f"{len(value)} pairs"
        case frozenset():
            return ", ".join(map(str, sorted(value)))
        case Enum():
            return value.name
        case _:
            return f"`{value}`" if isinstance(value, str) else str(value)


def test_the_reference_has_every_field_in_every_dialect() -> None:
    dialects = [polite.RFC9309, polite.CLASSIC, polite.GOOGLE_2010, polite.GOOGLE_2019, polite.GOOGLE]
    documented = {name: cells[:5] for name, cells in rows("dialects.md").items() if len(cells) > 2}

    assert documented == {
        field.name: [in_words(getattr(dialect, field.name)) for dialect in dialects]
        for field in fields(polite.Dialect)
    }


def arguments_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Each argument as the reference writes it, and its default."""
    arguments = {}
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        if action.help == argparse.SUPPRESS:  # there only to be refused
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        name = " ".join(filter(None, (*action.option_strings, value)))
        default = "none" if action.default is None else f"`{action.default}`".replace(__version__, "VERSION")
        if not action.option_strings:
            default = "required"
        arguments[name] = "off" if action.nargs == 0 else default
    return arguments


def test_the_reference_has_every_subcommand_with_its_arguments_and_defaults() -> None:
    command = parser()
    (subcommands,) = [each for each in command._actions if isinstance(each, argparse._SubParsersAction)]
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()

    assert re.findall(r"^## polite (\w+)$", page, re.MULTILINE) == list(subcommands.choices)
    assert arguments_of(command) == {"--version": rows("cli.md")["--version"][0]}
    headings = {each.lower().replace(" ", "-"): each for each in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    for name, subcommand in subcommands.choices.items():
        section = page.partition(f"\n## polite {name}\n")[2].partition("\n## ")[0]
        documented = rows("cli.md", f"polite {name}")
        # "With the [network options](#network-options)", all of them, or those after a colon.
        for anchor, some in re.findall(
            r"\b[Ww]ith[\w ]* \[[^\]]+\]\(#([\w-]+)\)(?:: (`.+?`)(?=\.))?", section
        ):
            others = rows("cli.md", headings[anchor])
            documented |= {key: others[key] for key in some.strip("`").split("`, `")} if some else others
        assert {key: cells[0] for key, cells in documented.items()} == arguments_of(subcommand), name


def test_the_supported_version_is_that_of_the_package() -> None:
    assert f"now {__version__.rpartition('.')[0]} |" in (ROOT / "SECURITY.md").read_text()


SITE = Site(ROOT, ROOT / "out" / "site")


def test_every_page_of_docs_is_in_the_navigation_once() -> None:
    sources = SITE.sources

    shown = list(SITE.navigation(sources).pages())

    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(shown)
    assert {page for page in shown if shown.count(page) > 1} == set()
    assert {"index.md", "changelog.md", "examples/many_machines.py.md"} <= set(shown)


def test_every_link_of_every_page_leads_to_a_page_of_the_site(tmp_path: Path) -> None:
    assert stage(SITE.sources, tmp_path) == []
