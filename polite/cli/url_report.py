"""Formats the result for one URL: as text, as a JSON object, and as an exit status."""

import os
from typing import Protocol, TextIO

from polite.cli.exit_codes import Exit
from polite.errors import InvalidURL, redact_url
from polite.origin import Target
from polite.robots.decision import Decision, Rule
from polite.robots.reason import Reason

UrlResult = Decision | InvalidURL


class Decided(Protocol):
    """What a decision says; `Decision` has it."""

    @property
    def allowed(self) -> bool: ...

    @property
    def reason(self) -> Reason: ...

    @property
    def cause(self) -> Reason | None: ...

    @property
    def rule(self) -> Rule | None: ...

    @property
    def undefined(self) -> bool: ...


_WORDS = {
    Exit.ALLOWED: "allowed",
    Exit.DISALLOWED: "disallowed",
    Exit.USAGE: "invalid",
    Exit.UNREACHABLE: "unreachable",
}
_WIDTH = max(map(len, _WORDS.values()))
# Select Graphic Rendition: green, red, magenta, yellow.
_COLOURS = {Exit.ALLOWED: 32, Exit.DISALLOWED: 31, Exit.USAGE: 35, Exit.UNREACHABLE: 33}


def exit_for(result: UrlResult) -> Exit:
    """Return the exit status for one result."""
    if isinstance(result, InvalidURL):
        return Exit.USAGE
    if result.reason is Reason.UNREACHABLE:
        return Exit.UNREACHABLE
    return Exit.ALLOWED if result.allowed else Exit.DISALLOWED


def as_text(url: str, result: UrlResult, *, coloured: bool = False) -> str:
    """Return one line: the decision, the URL, and the reason."""
    status = exit_for(result)
    word = f"{_WORDS[status]:<{_WIDTH}}"
    if coloured:
        word = f"\x1b[{_COLOURS[status]}m{word}\x1b[0m"
    return f"{word} {result}" if isinstance(result, InvalidURL) else f"{word} {redact_url(url)}  {result}"


def as_object(url: str, result: UrlResult) -> dict[str, object]:
    """Return the fields of a JSON object. `url` is canonical; an invalid one is shown as far as possible."""
    if isinstance(result, InvalidURL):
        return {"url": result.url, "allowed": None, "error": str(result)}
    return {"url": url if url.startswith("/") else Target.of(url).url, **decision_fields(result)}


def decision_fields(result: Decided) -> dict[str, object]:
    """Return the fields of a JSON object that say what was decided, and why."""
    rule = result.rule
    return {
        "allowed": result.allowed,
        "reason": result.reason.name,
        "cause": None if result.cause is None else result.cause.name,
        "rule": None if rule is None else f"{'Allow' if rule.allows else 'Disallow'}: {rule.pattern}",
        "line": None if rule is None else rule.line,
        "undefined": result.undefined,
    }


def wants_colour(out: TextIO | None) -> bool:
    """Whether to use colours: on a terminal, unless NO_COLOR is set (no-color.org). None is a closed output."""
    return (
        out is not None
        and out.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
