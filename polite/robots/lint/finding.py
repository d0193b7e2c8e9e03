"""Finding: one mistake in a robots.txt; and the codes of all mistakes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from polite.errors import redact_url
from polite.robots.lines import readable


class Code(NamedTuple):
    """What a code stands for.

    Attributes:
        level: as in SARIF. An error makes lines, or the whole file, meaningless for every crawler.
        title: the mistake in a few words.
    """

    level: Literal["error", "warning", "note"]
    title: str


# X1 to X8 are rows of the list in the Rambler document. D1 to D20 are mistakes of real files.
CODES: Mapping[str, Code] = {
    "X1": Code("error", "A path where the name of a crawler is expected"),
    "X2": Code("warning", "Several paths in one line"),
    "X3": Code("note", "A group without a Disallow line"),
    "X4": Code("warning", "A wildcard, which the dialect lacks"),
    "X5": Code("warning", "An Allow, which the dialect lacks"),
    "X6": Code("error", "A rule before any User-agent line"),
    "X7": Code("warning", "A mistyped field"),
    "X8": Code("error", "Content beyond the limit"),
    "D1": Code("warning", "A Crawl-delay that is not a number of seconds"),
    "D2": Code("note", "A byte order mark"),
    "D3": Code("error", "UTF-16 or UTF-32 where UTF-8 is expected"),
    "D4": Code("error", "A page of HTML where a robots.txt is expected"),
    "D5": Code("warning", "A path that does not start with a slash"),
    "D6": Code("warning", "A Sitemap that is not an absolute URL"),
    "D7": Code("warning", "A rule that never decides because another rule always wins"),
    "D8": Code("note", "A second group for one crawler"),
    "D9": Code("warning", "A name that no crawler has"),
    "D10": Code("warning", "A Crawl-delay or the like between User-agent lines"),
    "D11": Code("warning", "A character in a path that no URL has"),
    "D12": Code("error", "Content that is no text"),
    "D13": Code("warning", "A path that is not UTF-8"),
    "D14": Code("warning", "Several names in one User-agent line"),
    "D15": Code("warning", "A Noindex line"),
    "D16": Code("warning", "A Request-rate that is malformed"),
    "D17": Code("warning", "A Visit-time that is malformed"),
    "D18": Code("warning", "A # within a path, which starts a comment"),
    "D19": Code("warning", "A preference that is malformed"),
    "D20": Code("warning", "A License that is not an absolute URL"),
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake in a robots.txt.

        >>> from polite import lint
        >>> finding, = lint("User-agent: *\\nDisallow: private/")
        >>> finding.line, finding.code
        (2, 'D5')

    Attributes:
        line: 1-based.
        code: a key of CODES.
        message: what is wrong.
        hint: what to write instead.
    """

    line: int
    code: str
    message: str
    hint: str


def quoted(text: str) -> str:
    """Return a part of a line, one character per octet, as a message may show it."""
    return repr(redact_url(readable(text)))
