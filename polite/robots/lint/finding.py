"""Finding: one mistake in a robots.txt, and the codes of all that are looked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from polite.errors import redact_url
from polite.robots.lines import readable


class Code(NamedTuple):
    """What a code stands for. `level`, in the words of SARIF: an error makes lines, or all, mean nothing to anybody."""

    level: Literal["error", "warning", "note"]
    title: str


# X1 to X8 are rows of the Rambler document's list; the D are what real files show beside it.
CODES: Mapping[str, Code] = {
    "X1": Code("error", "A path where the name of a crawler belongs"),
    "X2": Code("warning", "Several paths in one line"),
    "X3": Code("note", "A group without a Disallow line"),
    "X4": Code("warning", "A wildcard where the convention has none"),
    "X5": Code("warning", "An Allow where the convention has none"),
    "X6": Code("error", "A rule before any User-agent line"),
    "X7": Code("warning", "A mistyped field"),
    "X8": Code("error", "Content beyond what counts"),
    "D1": Code("warning", "A Crawl-delay that is no number of seconds"),
    "D2": Code("note", "A byte order mark"),
    "D3": Code("error", "UTF-16 or UTF-32 where UTF-8 is expected"),
    "D4": Code("error", "A page of HTML where a robots.txt is expected"),
    "D5": Code("warning", "A path that does not start with a slash"),
    "D6": Code("warning", "A Sitemap that is no absolute URL"),
    "D7": Code("warning", "A rule that never decides, since another always wins"),
    "D8": Code("note", "A second group for one crawler"),
    "D9": Code("warning", "A name that no crawler can be found by"),
    "D10": Code("warning", "A Crawl-delay or the like between User-agent lines"),
    "D11": Code("warning", "A character in a path that no URL has"),
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake. `line` is 1-based; `code` is a key of CODES; `message` says what is wrong there, `hint` what to write."""

    line: int
    code: str
    message: str
    hint: str


def quoted(text: str) -> str:
    """A piece of a line, one character per octet, as a message may show it."""
    return repr(redact_url(readable(text)))
