"""Each public name has one entry on an API page, which says what it is: each field, parameter and error."""

import ast
import builtins
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe
import pytest

import polite
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
    r"polite\.(gate\.(services|origin_rules)|frontier\.(parts\.Parts|permit\.Owner)|blocking\.loop_thread|status\.(monitor|server)"
    r"|stores\.redis|integrations\.(adapter_turns|playwright\.(paused|context_guard)|crawl4ai\.crawler\.RulesOfGate|crawlee|scrapy)|testing\.(clock|loop|simulation)"
    r"|pacing\.turn\.(ScopeState|TurnState)|robots\.(decision\.RuleLine|lines\.Field|dialect\.Lifetime))"
)
CONSTRUCTORS = {"__init__", "__post_init__", "__new__"}
UNNAMED = {"self", "cls", "args", "kwargs"}


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


def test_each_name_that_examples_import_is_public() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    programs = [*(ROOT / "docs" / "examples").glob("*.py"), *(ROOT / "tests" / "typing").glob("*.py")]
    public = set(map(canonical, ENTRIES))
    imported = {
        f"{module}.{name}"
        for text in (each.read_text() for each in [*pages, *programs])
        for module, names in re.findall(r"^ *from (polite[\w.]*) import \(?([\w, \n]+)", text, re.MULTILINE)
        for name in re.findall(r"\w+", names.partition(" as ")[0] if "(" in names else names.split("\n")[0])
    }

    assert len(imported) > 20
    assert {
        name
        for name in imported
        if not isinstance(object_of(name), griffe.Module) and canonical(name) not in public
    } == set()


def test_each_type_of_a_public_signature_has_an_entry() -> None:
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


def test_each_entry_says_what_it_is() -> None:
    assert [entry for entry in ENTRIES if not text_of(object_of(entry))] == []


def test_each_field_says_what_it_is() -> None:
    undescribed = [
        f"{entry}.{name}"
        for entry, found in classes()
        for name, member in found.members.items()
        if not name.startswith("_") and isinstance(member, griffe.Attribute) and not text_of(member)
    ]

    assert undescribed == []


def test_each_field_that_a_docstring_describes_is_there() -> None:
    described = {
        f"{found.path}.{field.name}": field.name in found.all_members
        for _, found in classes()
        for section in griffe.Docstring(text_of(found), parent=found).parse("google", warnings=False)
        if section.kind is griffe.DocstringSectionKind.attributes
        for field in section.value
        if "No part of the public API." not in field.description
    }

    assert len(described) > 300
    assert [name for name, there in described.items() if not there] == []


def test_each_method_says_what_it_does() -> None:
    assert [name for name, function, owner in functions() if not contract_of(function, owner)] == []


def is_named(parameter: str, text: str) -> bool:
    """Whether a docstring names a parameter, as code or in words: "the URL" for `url`, "user agent" for `user_agent`."""
    words = parameter.strip("*").lower().split("_")
    return all(re.search(rf"(?<![a-z]){re.escape(word)}(s|es)?(?![a-z])", text.lower()) for word in words)


def has_foreign_base(owner: griffe.Class | None) -> bool:
    """Whether methods have the parameters, and may have the errors, of another package's class, which documents them."""
    foreign = ("requests.", "niquests.", "crawl4ai.", "crawlee.", "scrapy.", "aiohttp.", "asyncio.")
    bases = [base.canonical_path for base in owner.bases if isinstance(base, griffe.Expr)] if owner else []
    return any(base.startswith(foreign) for base in bases)


@cache
def promised() -> set[tuple[str, ...]]:
    """The methods of protocols with their parameters: an implementation need not describe these again."""
    return {
        (name, *(parameter.name for parameter in method.parameters))
        for _, protocol in classes()
        if any("Protocol" in str(base) for base in protocol.bases)
        for name, method in protocol.members.items()
        if isinstance(method, griffe.Function)
    }


def is_promised(function: griffe.Function, owner: griffe.Class | None) -> bool:
    protocol = owner is not None and any("Protocol" in str(base) for base in owner.bases)
    return (
        not protocol and (function.name, *(parameter.name for parameter in function.parameters)) in promised()
    )


def test_each_parameter_is_documented() -> None:
    undocumented = [
        f"{name}({parameter.name})"
        for name, function, owner in functions()
        for parameter in function.parameters
        if parameter.name.strip("*") not in UNNAMED
        and not has_foreign_base(owner)
        and not is_promised(function, owner)
        and not is_named(parameter.name, contract_of(function, owner))
    ]

    assert undocumented == []


def raised_by(function: griffe.Function) -> set[str]:
    """The errors that a function's own statements raise, and InvalidOption if it checks options."""
    tree = ast.parse(textwrap.dedent(function.source or "pass"))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    called = [each.func if isinstance(each, ast.Call) else each for each in raised]
    names = {each.id for each in called if isinstance(each, ast.Name)}
    checks = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    options = {
        name
        for name, member in object_of("polite.options").members.items()
        if not member.is_alias and member.is_function
    }
    return {name for name in names if name[0].isupper()} | ({"InvalidOption"} if checks & options else set())


def test_each_error_that_a_function_raises_itself_is_documented() -> None:
    undocumented = [
        (name, error)
        for name, function, owner in functions()
        for error in raised_by(function)
        if not has_foreign_base(owner)
        and error not in contract_of(function, owner) + (text_of(owner) if owner else "")
    ]

    assert undocumented == []


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


def test_no_line_of_a_docstring_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    for entry, found in [*((name, function) for name, function, _ in functions()), *classes()]:
        caplog.clear()
        docstring = griffe.Docstring(text_of(found), parent=found)

        with caplog.at_level("WARNING", logger="griffe"):
            docstring.parse("google", warn_unknown_params=False)

        assert caplog.messages == [], entry


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_a_page_and_the_reference_in_words_link_to_each_other(page: Path) -> None:
    leads = re.findall(r"\]\((?:\.\./)+((?:[\w-]+/)?[\w-]+\.md)", page.read_text())
    linking = [each for each in REFERENCE.glob("*.md") if f"](api/{page.name})" in each.read_text()]

    assert leads
    assert [each.name for each in linking] != []


def test_the_index_names_each_page_and_each_module() -> None:
    index = (REFERENCE / "api" / "index.md").read_text()
    modules = {entry for entry in LISTED if not entry.startswith("polite.integrations")}

    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {page.name for page in PAGES} - {"index.md"}
    assert modules <= set(re.findall(r"^\| `(polite[\w.]*)` \|", index, re.MULTILINE))


# What the extension makes of docstrings.


def test_a_field_has_its_description_as_its_own() -> None:
    assert text_of(object_of("polite.PacingPolicy.min_delay")).startswith("The least delay")
    assert text_of(object_of("polite.Decision.path"))
    assert text_of(object_of("polite.Reason.RULE")) == "a rule of the file matches."
    assert text_of(object_of("polite.frontier.puts.PutOptions.depth")).startswith(
        "For `schedulers.BreadthFirst`"
    )


def test_a_default_is_shown_as_the_value_that_it_stands_for() -> None:
    def default(method: str, parameter: str) -> str:
        function = object_of(method)
        assert isinstance(function, griffe.Function)
        return str(function.parameters[parameter].default)

    tries = inspect.signature(polite.Frontier).parameters["max_tries"].default
    assert default("polite.Frontier.__init__", "max_tries") == str(tries)
    assert default("polite.PacingPolicy.__init__", "backoff_statuses") == "frozenset({429, 503})"
    assert default("polite.PacingPolicy.__init__", "scopes") == "by_origin"


def test_what_only_polite_uses_is_no_part_of_the_reference() -> None:
    gate, permit, policy = (object_of(f"polite.{name}") for name in ("Gate", "TaskPermit", "PacingPolicy"))

    hidden = {
        "polite.RuleSet": {"reading"},
        "polite.SignalSet": {"read_with_care"},
        "polite.robots.signals.Statement": {"only_refusals"},
        "polite.pacing.turn.Turn": {"scope_states", "order", "path", "stage", "refusal_counted"},
        "polite.integrations.scrapy.PoliteQueue": {"offer", "withdraw"},
        "polite.integrations.crawlee.PoliteRequestManager": {"take_permit", "claim_permit"},
        "polite.integrations.playwright.Guard": {
            *("begin", "handle", "target_of", "target_gone", "take_ahead", "give_back"),
        },
    }

    assert {
        name: shown for name, names in hidden.items() if (shown := names & {*object_of(name).members})
    } == {}
    assert not {"services"} & set(gate.all_members)
    assert not {"grounds_at", "lose", "is_of", "stands"} & set(permit.all_members)
    assert "with_checked" not in policy.all_members
    assert {"pacing", "check"} <= set(gate.all_members)
    assert {"report", "retry"} <= set(permit.all_members)


def test_the_bases_of_a_class_are_public() -> None:
    public = set(map(canonical, ENTRIES))
    bases = {entry: found.bases for entry, found in classes()}

    assert [*map(str, bases["polite.Decision"])] == ["NamedTuple"]
    assert [*map(str, bases["polite.RobotsUnreachable"])] == ["Disallowed"]
    assert {
        (entry, str(base))
        for entry, of_entry in bases.items()
        for base in of_entry
        if isinstance(base, griffe.Expr) and base.canonical_path.startswith("polite.")
        if base.canonical_path not in public
    } == set()


def test_examples_are_code_and_names_and_errors_are_links() -> None:
    rule = object_of("polite.Rule").docstring
    gate = object_of("polite.Gate").docstring
    check = object_of("polite.Gate.check").docstring
    assert rule is not None
    assert gate is not None
    assert check is not None
    text = "".join(
        section.value for section in gate.parsed if section.kind is griffe.DocstringSectionKind.text
    )
    (errors,) = (each for each in check.parsed if each.kind is griffe.DocstringSectionKind.raises)

    assert "[`polite.open_gate`][polite.open_gate]" in text
    assert "```python\nasync with polite.open_gate(" in text
    assert "```pycon\n>>> " in "".join(str(section.value) for section in rule.parsed)
    assert [error.annotation.canonical_path for error in errors.value][:2] == [
        "polite.errors.InvalidURL",
        "polite.errors.GateClosed",
    ]
