"""What the API reference shows of docstrings: a griffe extension, which changes them after they are read from the source.

A field that a class describes under `Attributes:` or `Args:` gets a heading of its own, so that search finds it. A method without
a docstring has that of the protocol that it implements. What only polite itself uses is left out, and a base class without an
entry gives way to its own bases. A context manager has the type that a call returns. Examples become code. The names of public
things in backticks, and the errors under `Raises:`, become links to their entries.
"""

import re
import textwrap
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import griffe

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
_ENTRY = re.compile(r"^::: (polite[\w.]*)$", re.MULTILINE)
# In backticks: a name, perhaps with its module or a member, perhaps with arguments.
_NAMED = re.compile(r"(?<![\w`\[])`((?:polite\.)?(\w+(?:\.\w+)*)(?:\([^`]*\))?)`(?![`\]])")
_LITERAL = re.compile(r"[\d'\"(]|frozenset\(")
# The docstring of an implementation: "See ports.Scheduler."
_REFERENCE = re.compile(r"See ports\.\w+\.")
_KINDS = griffe.DocstringSectionKind
_MANAGERS = {
    "contextlib.asynccontextmanager": "AbstractAsyncContextManager",
    "contextlib.contextmanager": "AbstractContextManager",
    "polite.compose.gate.opening": "AbstractAsyncContextManager",
}
# In the docstring of a member that only other packages of polite use.
PRIVATE = "No part of the public API."


def entries() -> Iterator[str]:
    """Yield the name of each entry of the API pages, page by page."""
    for page in sorted(PAGES.glob("*.md")):
        yield from _ENTRY.findall(page.read_text(encoding="utf-8"))


class Docstrings(griffe.Extension):
    """Changes the docstrings of a whole package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:  # noqa: ANN401 - as griffe declares it
        """Change all docstrings. Called once, when the package is read."""
        links = Links(pkg)
        promised = _promised(pkg)
        for each in list(_all_of(pkg)):
            if isinstance(each, griffe.Class):
                _describe_fields(each, links)
                _describe_methods(each, promised)
                _leave_out_private(each)
        public = {found.path for entry in entries() if (found := _found(pkg, entry)) is not None}
        for each in _all_of(pkg):
            if isinstance(each, griffe.Class):
                each.bases = [base for every in each.bases for base in _public_bases(pkg, every, public)]
            if isinstance(each, griffe.Function):
                _describe_context_manager(each)
                for parameter in each.parameters:
                    parameter.default = _literal(pkg, each, parameter.default)
            elif isinstance(each, griffe.Attribute) and isinstance(each.parent, griffe.Class):
                each.value = _literal(pkg, each, each.value)
            if each.docstring is not None:
                each.docstring.__dict__["parsed"] = [
                    links.in_section(_with_code(section), each) for section in each.docstring.parsed
                ]


class Links:
    """Links from names in docstrings to the entries of the API pages."""

    def __init__(self, pkg: griffe.Module) -> None:
        self._pkg = pkg
        self._anchors: dict[str, str] = {}
        for entry in entries():
            self._add(entry)

    def _add(self, entry: str) -> None:
        short = entry.removeprefix("polite.")
        self._anchors[short] = entry
        found = _found(self._pkg, entry)
        if isinstance(found, griffe.Class):
            for member in found.members:
                if not member.startswith("_"):
                    self._anchors[f"{short}.{member}"] = f"{entry}.{member}"

    def in_section(self, section: griffe.DocstringSection, of: griffe.Object) -> griffe.DocstringSection:
        """Return the section with links."""
        if section.kind is _KINDS.text:
            section.value = self._in_text(section.value, of)
        elif section.kind is _KINDS.raises:
            section.value = [one for error in section.value for one in self._each(error)]
        return section

    def _each(self, error: griffe.DocstringRaise) -> Iterator[griffe.DocstringRaise]:
        """Yield one entry per error where `A, B: ...` stands for several, each with a link."""
        for name in str(error.annotation).strip("()").split(", "):
            public = name in self._pkg.members
            yield griffe.DocstringRaise(
                annotation=griffe.ExprName(name, parent=self._pkg) if public else name,
                description=error.description,
            )

    def named_first(self, text: str) -> griffe.Object | None:
        """Return the first public thing that a text names in backticks."""
        for match in _NAMED.finditer(text):
            if anchor := self._anchors.get(match[2]):
                return _found(self._pkg, anchor)
        return None

    def _in_text(self, text: str, of: griffe.Object) -> str:
        fence = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
        parts = fence.split(text)
        # Every second part is code.
        parts[::2] = [_NAMED.sub(lambda match: self._link(match, of), part) for part in parts[::2]]
        return "".join(parts)

    def _link(self, match: re.Match[str], of: griffe.Object) -> str:
        module = of.module.path.removeprefix("polite.")
        # In `polite.blocking`, `Gate` is that of `polite.blocking`.
        anchor = self._anchors.get(f"{module}.{match[2]}") or self._anchors.get(match[2])
        if anchor is None and module.startswith("blocking"):
            anchor = self._anchors.get(f"blocking.{match[2]}")
        return match[0] if anchor is None or anchor == of.path else f"[{match[0]}][{anchor}]"


def _all_of(within: griffe.Object) -> Iterator[griffe.Object]:
    yield within
    for member in list(within.members.values()):
        if isinstance(member, griffe.Object):
            yield from _all_of(member)


def _found(pkg: griffe.Module, entry: str) -> griffe.Object | None:
    """Return what an entry names. Aliases are not resolved yet, so follow them by their paths."""
    within: griffe.Object = pkg
    for name in entry.split(".")[1:]:
        member = within.members.get(name)
        if isinstance(member, griffe.Alias):
            member = _found(pkg, member.target_path)
        if member is None:
            return None
        within = member
    return within


def _described(found: griffe.Object | None) -> dict[str, str]:
    """Return what a docstring says of fields and parameters, by their names."""
    parsed = found.docstring.parsed if found is not None and found.docstring is not None else []
    wanted = (_KINDS.parameters, _KINDS.attributes)
    return {
        each.name: each.description for section in parsed if section.kind in wanted for each in section.value
    }


def _describe_fields(cls: griffe.Class, links: Links) -> None:
    """Give each field its description: from `Attributes:` or `Args:` of its class, or from the value of an enumeration's member.

    The fields of a TypedDict are those of the first public thing that its docstring names.
    """
    described = _described(cls)
    if "TypedDict" in map(str, cls.bases) and cls.docstring is not None:
        described = _described(links.named_first(cls.docstring.value))
    for name, description in described.items():
        member = cls.members.get(name) or _add_inherited(cls, name)
        if isinstance(member, griffe.Attribute) and member.docstring is None:
            member.docstring = griffe.Docstring(description[:1].upper() + description[1:], parent=member)
    if cls.docstring is not None:
        kept = [each for each in cls.docstring.parsed if each.kind is not _KINDS.attributes]
        cls.docstring.__dict__["parsed"] = kept
    constructor = cls.members.get("__init__")
    if isinstance(constructor, griffe.Function):
        for member in cls.members.values():
            if isinstance(member, griffe.Attribute) and "instance-attribute" in member.labels:
                _describe_type(member, constructor)
    # An exception's own: `args` of BaseException.
    if "args" in cls.members and any(str(base).endswith("Error") for base in cls.bases):
        del cls.members["args"]
    for member in cls.members.values():
        if isinstance(member, griffe.Attribute) and member.docstring is None and _is_prose(member):
            member.docstring = griffe.Docstring(f"{str(member.value)[1:-1]}.", parent=member)


def _public_bases(
    pkg: griffe.Module, base: str | griffe.Expr, public: AbstractSet[str]
) -> Iterator[str | griffe.Expr]:
    """Yield a base, or those of a base that only polite itself uses."""
    path = base.canonical_path if isinstance(base, griffe.Expr) else base
    found = _found(pkg, path) if path.startswith("polite.") and path not in public else None
    if isinstance(found, griffe.Class):
        for each in found.bases:
            yield from _public_bases(pkg, each, public)
    else:
        yield base


def _leave_out_private(cls: griffe.Class) -> None:
    """Leave out members without an underscore that only polite itself uses. Their descriptions say so."""
    for name, member in list(cls.members.items()):
        if (
            isinstance(member, griffe.Object)
            and member.docstring is not None
            and PRIVATE in member.docstring.value
        ):
            del cls.members[name]


def _describe_context_manager(function: griffe.Function) -> None:
    """Give a generator that `contextlib` makes a context manager the type of a call: `async with` takes it, `await` does not."""
    decorators = {decorator.callable_path for decorator in function.decorators}
    for path, manager in _MANAGERS.items():
        if path in decorators and isinstance(function.returns, griffe.ExprSubscript):
            function.returns = griffe.ExprSubscript(griffe.ExprName(manager), function.returns.slice)
            function.labels.discard("async")


def _describe_type(field: griffe.Attribute, constructor: griffe.Function) -> None:
    """Give a field that the constructor sets the type of the parameter, in place of the expression that is assigned."""
    if field.annotation is None and field.name in constructor.parameters:
        field.annotation = constructor.parameters[field.name].annotation
    if isinstance(field.value, griffe.Expr):
        field.value = None


def _literal(
    pkg: griffe.Module, of: griffe.Object, value: str | griffe.Expr | None
) -> str | griffe.Expr | None:
    """Return the number, text or set that a default stands for: `REFUSALS`, or `_DEFAULTS.max_waiting` of a dataclass.

    Anything else is returned as it is.
    """
    name, _, field = str(value).partition(".")
    if not isinstance(value, griffe.ExprName | griffe.ExprAttribute) or "." in field:
        return value
    found = _of_module(pkg, of, name)
    if field and isinstance(found, griffe.Attribute):
        made = _of_module(pkg, found, str(found.value).removesuffix("()"))
        found = made.members.get(field) if isinstance(made, griffe.Class) else None
    known = found.value if isinstance(found, griffe.Attribute) else None
    return known if known is not None and _LITERAL.match(str(known)) else value


def _of_module(pkg: griffe.Module, of: griffe.Object, name: str) -> griffe.Object | griffe.Alias | None:
    """Return what a name is in the module of an object, perhaps imported there."""
    member = of.module.members.get(name)
    return _found(pkg, member.target_path) if isinstance(member, griffe.Alias) else member


# Protocols whose implementations need no docstring of their own for a method.
_PROTOCOLS = ("polite.ports", "polite.pacing.throttle")


def _promised(pkg: griffe.Module) -> dict[str, griffe.Function]:
    """Return the methods of protocols, by their names."""
    found = (_found(pkg, path) for path in _PROTOCOLS)
    return {
        name: method
        for parent in found
        if parent is not None
        for module in (parent, *parent.modules.values())
        for cls in module.members.values()
        if isinstance(cls, griffe.Class) and any("Protocol" in str(base) for base in cls.bases)
        for name, method in cls.members.items()
        if isinstance(method, griffe.Function) and method.docstring is not None
    }


def _describe_methods(cls: griffe.Class, promised: dict[str, griffe.Function]) -> None:
    """Give the methods of an implementation the docstrings of its protocol, unless they have their own."""
    for name, method in cls.members.items():
        contract = promised.get(name)
        if contract is None or contract.docstring is None or isinstance(method, griffe.Alias):
            continue
        if not _implements(method, contract):
            continue
        if method.docstring is None or _REFERENCE.fullmatch(method.docstring.value):
            method.docstring = griffe.Docstring(contract.docstring.value, parent=method, parser="google")


def _implements(method: griffe.Object, contract: griffe.Function) -> bool:
    if isinstance(method, griffe.Function):
        return [each.name for each in method.parameters] == [each.name for each in contract.parameters]
    # A function that was given a name in the class, such as `wall = staticmethod(time.time)`.
    return isinstance(method, griffe.Attribute) and "staticmethod" in str(method.value)


def _add_inherited(cls: griffe.Class, name: str) -> griffe.Attribute | None:
    """Show a field of a private base, such as the NamedTuple below a Decision, at the class itself."""
    for base in map(str, cls.bases):
        private = cls.module.members.get(base)
        field = private.members.get(name) if isinstance(private, griffe.Class) else None
        if isinstance(field, griffe.Attribute):
            own = griffe.Attribute(name, annotation=field.annotation, value=field.value, lineno=field.lineno)
            own.labels |= field.labels
            cls.set_member(name, own)
            return own
    return None


def _is_prose(member: griffe.Attribute) -> bool:
    """Whether a member of an enumeration has a value that describes it: a string of several words."""
    within = member.parent
    enumeration = isinstance(within, griffe.Class) and any(
        str(base) in {"Enum", "StrEnum"} for base in within.bases
    )
    value = str(member.value)
    return enumeration and value[:1] in {'"', "'"} and " " in value


def _with_code(section: griffe.DocstringSection) -> griffe.DocstringSection:
    """Return a section whose examples are fenced code."""
    if section.kind is _KINDS.text:
        section.value = "\n\n".join(map(_fenced, section.value.split("\n\n")))
    elif section.kind is _KINDS.admonition and section.value.kind == "example":
        code = textwrap.dedent(section.value.contents)
        return griffe.DocstringSectionText(f"Example:\n\n```python\n{code}\n```")
    return section


def _fenced(paragraph: str) -> str:
    text = textwrap.dedent(paragraph)
    return f"```pycon\n{text}\n```" if text.startswith(">>> ") else paragraph
