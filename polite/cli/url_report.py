"""One URL's answer: as a line for people, as an object for programs, as an exit status."""

import os
from typing import TextIO

from polite.cli.exit_codes import Exit
from polite.errors import InvalidURL, redact_url
from polite.origin import Target
from polite.robots.decision import Decision
from polite.robots.reason import Reason

Answer = Decision | InvalidURL

_WORDS = {
    Exit.ALLOWED: "allowed",
    Exit.DISALLOWED: "disallowed",
    Exit.USAGE: "invalid",
    Exit.UNREACHABLE: "unreachable",
}
_WIDTH = max(map(len, _WORDS.values()))
# Select Graphic Rendition: green, red, magenta, yellow.
_COLOURS = {Exit.ALLOWED: 32, Exit.DISALLOWED: 31, Exit.USAGE: 35, Exit.UNREACHABLE: 33}


def exit_for(answer: Answer) -> Exit:
    """The exit status that one answer stands for."""
    if isinstance(answer, InvalidURL):
        return Exit.USAGE
    if answer.reason is Reason.UNREACHABLE:
        return Exit.UNREACHABLE
    return Exit.ALLOWED if answer.allowed else Exit.DISALLOWED


def as_text(url: str, answer: Answer, *, coloured: bool = False) -> str:
    """One line: the verdict, the URL, and why."""
    status = exit_for(answer)
    word = f"{_WORDS[status]:<{_WIDTH}}"
    if coloured:
        word = f"\x1b[{_COLOURS[status]}m{word}\x1b[0m"
    return f"{word} {answer}" if isinstance(answer, InvalidURL) else f"{word} {redact_url(url)}  {answer}"


def as_object(url: str, answer: Answer) -> dict[str, object]:
    """`url` is canonical, or, where it is none, as far as it can be shown; `rule` and `line` are null where no rule decided."""
    if isinstance(answer, InvalidURL):
        return {"url": answer.url, "allowed": None, "error": str(answer)}
    rule = answer.rule
    return {
        "url": url if url.startswith("/") else Target.of(url).url,
        "allowed": answer.allowed,
        "reason": answer.reason.name,
        "cause": None if answer.cause is None else answer.cause.name,
        "rule": None if rule is None else f"{'Allow' if rule.allows else 'Disallow'}: {rule.pattern}",
        "line": None if rule is None else rule.line,
        "undefined": answer.undefined,
    }


def wants_colour(out: TextIO | None) -> bool:
    """A terminal, and nobody who said otherwise (no-color.org); None is an output closed from the start."""
    return (
        out is not None
        and out.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
