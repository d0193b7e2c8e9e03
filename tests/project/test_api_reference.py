"""Each public name has one entry on an API page, which says what it is: each field, parameter and error."""

import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import griffe
import pytest

from tests.frameworks.installed import FRAMEWORKS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted((REFERENCE / "api").glob("*.md"))
# Of these modules, each class, function and constant without an underscore is public; of others, what `__all__` lists.
WHOLE = (
    "polite.events",
    "polite.schedulers",
    "polite.integrations.aiohttp",
    "polite.integrations.curl_cffi",
    "polite.integrations.httpx",
    "polite.integrations.niquests",
    "polite.integrations.requests",
    "polite.integrations.protego",
    "polite.integrations.robotparser",
)
LISTED = (
    "polite",
    "polite.blocking",
    "polite.ports",
    "polite.sitemaps",
    "polite.status",
    "polite.testing",
    "polite.throttles",
    *(f"polite.integrations.{name}" for name in FRAMEWORKS),
)
# Types in signatures that users need not name: what polite's own modules pass to each other.
OF_POLITE_ALONE = re.compile(
    r"polite\.(gate\.(services|origin_rules)|frontier\.dispatcher\.Dispatcher|blocking\.loop_thread|status\.(monitor|server)"
    r"|stores\.redis|integrations\.(adapter_turns|playwright\.(paused|context_guard)|crawl4ai\.crawler\.RulesOfGate|crawlee|scrapy)|testing\.(clock|loop|simulation)"
    r"|pacing\.turn\.(ScopeState|TurnState)|robots\.(decision\.RuleLine|lines\.Field|dialect\.Lifetime))"
)
CONSTRUCTORS = {"__init__", "__post_init__", "__new__"}
UNNAMED = {"self", "cls", "args", "kwargs"}
FOREIGN = ("requests.", "niquests.", "crawl4ai.", "crawlee.", "scrapy.", "aiohttp.", "asyncio.")


def entries_of(page: Path) -> list[str]:
    return re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)


ENTRIES = [entry for page in PAGES for entry in entries_of(page)]


@cache
def package() -> griffe.Module:
    extension = griffe.load_extensions(ROOT / "docs" / "website" / "docstrings.py")
    loaded = griffe.load(
        "polite",
        search_paths=[ROOT],
        docstring_parser="google",
        allow_inspection=False,
        resolve_aliases=True,
        extensions=extension,
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


def object_of(name: str) -> griffe.Object:
    """What a name is, where it is defined. A function of the name of its module is the function."""
    found = package()[name.removeprefix("polite.")] if name != "polite" else package()
    return found.final_target if isinstance(found, griffe.Alias) else found


def public_names() -> Iterator[str]:
    for module in LISTED:
        yield from (f"{module}.{name}" for name in object_of(module).exports or ())
    for module in WHOLE:
        for name, member in object_of(module).members.items():
            if not (name.startswith("_") or member.is_alias or name == "log"):
                yield f"{module}.{name}"


def canonical(name: str) -> str:
    found = object_of(name)
    within = found.members.get(found.name) if isinstance(found, griffe.Module) else None
    return found.path if within is None else within.path


def text_of(found: griffe.Object) -> str:
    return found.docstring.value if found.docstring else ""


def classes() -> list[tuple[str, griffe.Class]]:
    return [(entry, found) for entry in ENTRIES if isinstance(found := object_of(entry), griffe.Class)]


def functions() -> Iterator[tuple[str, griffe.Function, griffe.Class | None]]:
    """Public functions and methods; constructors, unless the page leaves them out since other calls make the object."""
    made = {
        entry
        for page in PAGES
        for entry in re.findall(
            r"^::: (\S+)\n    options:\n      merge_init_into_class: false$", page.read_text(), re.MULTILINE
        )
    }
    for entry in ENTRIES:
        found = object_of(entry)
        if isinstance(found, griffe.Function):
            yield entry, found, None
        elif isinstance(found, griffe.Class):
            for name, member in found.members.items():
                constructor = name in CONSTRUCTORS and entry not in made
                if isinstance(member, griffe.Function) and (constructor or not name.startswith("_")):
                    yield f"{entry}.{name}", member, found


def contract_of(function: griffe.Function, owner: griffe.Class | None) -> str:
    """Its docstring; that of the class for a constructor."""
    constructor = owner is not None and function.name.startswith("__")
    return text_of(owner) + text_of(function) if constructor and owner is not None else text_of(function)


def test_each_public_name_has_one_entry() -> None:
    entries = Counter(map(canonical, ENTRIES))

    assert {name: entries[canonical(name)] for name in public_names() if entries[canonical(name)] != 1} == {}
    assert [name for name, count in entries.items() if count != 1] == []


# Modules that the page on stability does not name are no place to import from.
STABLE = re.findall(r"`(polite[\w.]*)`", (ROOT / "docs/explanation/stability.md").read_text())


def imported(files: Iterable[Path]) -> set[tuple[str, str]]:
    """The modules of polite that pages and programs import from, each with a name."""
    return {
        (module, name)
        for text in (each.read_text() for each in files)
        for module, names in re.findall(r"^ *from (polite[\w.]*) import \(?([\w, \n]+)", text, re.MULTILINE)
        for name in re.findall(r"\w+", names.partition(" as ")[0] if "(" in names else names.split("\n")[0])
    }


def test_each_name_that_examples_import_is_public_and_so_is_its_module() -> None:
    # A decision says how polite is made, and the page on the architecture what is inside.
    pages = [ROOT / "README.md", *(ROOT / "docs/examples").glob("*.py")]
    pages += [
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name != "decisions" and page.stem != "architecture"
    ]
    inner = [
        module
        for module, _ in imported(pages)
        if not module.startswith("polite.integrations")
        and not any(f"{n}.".startswith(f"{module}.") for n in STABLE)
    ]
    names = {".".join(each) for each in imported([*pages, *(ROOT / "tests" / "typing").glob("*.py")])}
    public = set(map(canonical, ENTRIES))

    assert len(names) > 20
    assert inner == []
    assert [
        name
        for name in names
        if not isinstance(object_of(name), griffe.Module) and canonical(name) not in public
    ] == []


def test_each_type_and_base_in_a_public_signature_has_an_entry() -> None:
    public = set(map(canonical, ENTRIES))
    annotations = [
        (name, annotation)
        for name, function, _ in functions()
        for annotation in (function.returns, *(parameter.annotation for parameter in function.parameters))
    ]
    annotations += [
        (f"{entry}.{field}", member.annotation)
        for entry, found in classes()
        for field, member in found.members.items()
        if isinstance(member, griffe.Attribute) and not field.startswith("_")
    ]
    annotations += [(entry, base) for entry, found in classes() for base in found.bases]
    missing = {
        (name, part.canonical_path)
        for name, annotation in annotations
        if isinstance(annotation, griffe.Expr)
        for part in annotation.iterate(flat=True)
        if isinstance(part, griffe.ExprName) and part.canonical_path.startswith("polite.")
        if not OF_POLITE_ALONE.match(part.canonical_path) and canonical(part.canonical_path) not in public
    }

    # Give each an entry on a page of docs/reference/api, or, if only polite itself uses it, a place in OF_POLITE_ALONE.
    assert missing == set()


# Those of a class are of its constructor, and one line may describe two.
LENIENT: dict[str, bool] = {"warn_unknown_params": False, "warn_missing_types": False}


def test_each_field_that_a_docstring_describes_is_there_and_no_line_is_lost(caplog: pytest.LogCaptureFixture):
    described: dict[str, bool] = {}
    # The site reads them in its own way when they are loaded.
    all_classes, all_functions = [*classes()], [*functions()]
    caplog.clear()
    with caplog.at_level("WARNING", logger="griffe"):
        for _, found in all_classes:
            for section in griffe.Docstring(text_of(found), parent=found).parse("google", **LENIENT):
                if section.kind is griffe.DocstringSectionKind.attributes:
                    fields = [
                        each for each in section.value if "No part of the public API." not in each.description
                    ]
                    described |= {
                        f"{found.path}.{each.name}": each.name in found.all_members for each in fields
                    }
        for _, function, _ in all_functions:
            griffe.Docstring(text_of(function), parent=function).parse("google", **LENIENT)

    assert len(described) > 300
    assert [name for name, there in described.items() if not there] == []
    assert caplog.messages == []


def is_named(parameter: str, text: str) -> bool:
    """Whether a docstring names a parameter, as code or in words: "the URL" for `url`, "user agent" for `user_agent`."""
    words = parameter.strip("*").lower().split("_")
    return all(re.search(rf"(?<![a-z]){re.escape(word)}(s|es)?(?![a-z])", text.lower()) for word in words)


def signature(function: griffe.Function) -> tuple[str, ...]:
    return (function.name, *(parameter.name for parameter in function.parameters))


def test_each_entry_field_method_and_parameter_says_what_it_is() -> None:
    bases = {
        entry: [str(getattr(base, "canonical_path", base)) for base in found.bases]
        for entry, found in classes()
    }
    protocols = {entry for entry, names in bases.items() if any("Protocol" in name for name in names)}
    # An implementation need not describe again what its protocol, or the class of another package, does.
    promised = {
        signature(function) for name, function, _ in functions() if name.rpartition(".")[0] in protocols
    }
    texts = {entry: text_of(object_of(entry)) for entry in ENTRIES}
    texts |= {
        f"{entry}.{name}": text_of(member)
        for entry, found in classes()
        for name, member in found.members.items()
        if not name.startswith("_") and isinstance(member, griffe.Attribute)
    }
    for name, function, owner in functions():
        contract = texts[name] = contract_of(function, owner)
        entry = name.rpartition(".")[0]
        foreign = any(base.startswith(FOREIGN) for base in bases.get(entry, ()))
        if not foreign and (entry in protocols or signature(function) not in promised):
            asked = [each.name for each in function.parameters if each.name.strip("*") not in UNNAMED]
            texts |= {f"{name}({each})": "" for each in asked if not is_named(each, contract)}

    assert [name for name, text in texts.items() if not text] == []


def test_each_error_that_a_docstring_names_is_a_public_one_or_pythons() -> None:
    documented = {
        (name, str(error.annotation))
        for name, found in [*((name, function) for name, function, _ in functions()), *classes()]
        if found.docstring
        for section in found.docstring.parsed
        if section.kind is griffe.DocstringSectionKind.raises
        for error in section.value
    }
    public = {entry.rpartition(".")[2] for entry in ENTRIES}

    assert len(documented) > 100
    # A name with its module is another package's.
    assert [
        each
        for each in documented
        if "." not in each[1] and each[1] not in public and not hasattr(builtins, each[1])
    ] == []


def test_the_site_shows_fields_defaults_and_links() -> None:
    policy, gate = object_of("polite.PacingPolicy"), object_of("polite.Gate").docstring
    constructor = policy.members["__init__"]
    assert isinstance(constructor, griffe.Function)
    assert gate is not None

    # A field has its description as its own, and a default is the value that it stands for.
    assert text_of(policy.members["min_delay"]).startswith("The least delay")
    assert str(constructor.parameters["backoff_statuses"].default) == "frozenset({429, 503})"
    text = "".join(str(section.value) for section in gate.parsed)
    assert "[`polite.open_gate`][polite.open_gate]" in text
    assert "```python\nasync with polite.open_gate(" in text
    # What only polite uses is left out.
    assert {"services", "pacing"} & {*object_of("polite.Gate").members} == {"pacing"}
