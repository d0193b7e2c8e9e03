"""Each public name has one entry on an API page, which says what it is: each field, parameter and error."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe

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
