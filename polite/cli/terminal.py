"""What a terminal gets: exit statuses, text in terms of the command line and without control characters, a rich console."""

import re
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from polite.errors import InvalidOption

if TYPE_CHECKING:
    from rich.console import Console


class Exit(IntEnum):
    """The exit statuses. The last three are 128 plus a signal's number, as shells report them."""

    ALLOWED = 0
    DISALLOWED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143


def console(out: TextIO) -> "Console | None":
    """Return a console, or None: write plain lines then."""
    if not out.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=out)


def printable(text: str) -> str:
    """Escape control characters, which a site could send to control the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)


def complain(text: str) -> None:
    """Print one line on standard error."""
    print(f"polite: {text}", file=sys.stderr)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


# The command-line options of the library's.
OPTIONS = {
    "FetchPolicy.timeout": "--timeout",
    "FetchPolicy.allow_private": "--allow-private",
    "SitemapPolicy.timeout": "--timeout",
    "RobotsPolicy.dialect": "--dialect",
    "PacingPolicy.min_delay": "--delay",
    "PacingPolicy.backoff_statuses": "--back-off-on",
    "PacingPolicy.on_long_delay": "--long-delay",
    "PacingPolicy.max_pages": "--max-pages",
    "PacingPolicy.max_bytes": "--max-origin-bytes",
    "PacingPolicy.max_failures": "--max-failures",
    "WebBotAuth.signature_agent": "--signature-agent",
    "open_gate(signer=...)": "--sign",
    "crawl": "--crawl",
    "min_delay": "--delay",
    "on_long_delay": "--long-delay",
    "max_tries": "--tries",
}
# What has no option and is said often.
_WORDS = {"max_crawl_delay": "the limit on Crawl-delay", "max_retry_after": "the limit on Retry-After"}
_PHRASES = {
    " blocked; only FetchPolicy.allowed_networks can permit": " blocked and never fetched: no option permits",
    "FetchPolicy.allow_private or allowed_networks": "FetchPolicy.allow_private",
}
_CHANGES = re.compile(r"(\S+)(?= changes it)")
# An option as messages about a URL or an origin name it. Not within a URL, which may hold any word.
_NAMED = re.compile(
    r"(?<![^\s(;,])((?:(?:Fetch|Robots|Pacing|Sitemap)Policy|Frontier)\.\w+|(?:min|max|on|latency)_[a-z_]+|open_gate\(signer=\.\.\.\))(?:(=)|(?![^\s).,:;]))"
)


def message_of(error: Exception) -> str:
    """Return the message of an error, which names the command line's option if the error is about one."""
    if isinstance(error, InvalidOption) and error.option in OPTIONS:
        return f"{OPTIONS[error.option]} {error.problem}"
    return spelled(str(error))


def spelled(text: str, options: Mapping[str, str] = OPTIONS) -> str:
    """Return what the library says of a URL or an origin in terms of the command line, whose options these are."""
    for phrase, plain in _PHRASES.items():
        text = text.replace(phrase, plain)
    text = _CHANGES.sub(lambda found: options.get(found[1], "no command-line option"), text)
    return _NAMED.sub(lambda found: _spelled_name(found, options), text)


def _spelled_name(found: re.Match[str], options: Mapping[str, str]) -> str:
    name, sign = found[1], found[2] or ""
    if name in options:
        return options[name] + sign
    field = name.rpartition(".")[2]
    if sign:
        return "the limit of "
    words = _WORDS.get(field, field.replace("_", " "))
    return f"the option {words}" if "." in name else words
