"""Checks of the values of fields that are no rules: pace, Sitemap, preferences, licences."""

import re
from collections.abc import Iterator, Sequence

from polite.http.structured_fields import Malformed, parse_dictionary
from polite.robots import preferences
from polite.robots.lines import Field, Line
from polite.robots.lint.finding import Finding, quoted
from polite.robots.pace_fields import crawl_delay, request_rates, visit_time
from polite.robots.signals import path_and_text

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
# The keys of Content-Signal that are answered with yes or no (Content Signals policy).
_YES_OR_NO = {"search", "ai-input", "ai-train"}
_LEVELS = {"immediate", "reference", "full"}
# Labels that a message names.
_MOST_NAMED = 5


def pace_findings(line: Line) -> Iterator[Finding]:
    """Check a Crawl-delay, Request-rate or Visit-time (D1, D16, D17)."""
    if line.field is Field.CRAWL_DELAY and crawl_delay((line.value,)) is None:
        yield Finding(
            line.number,
            "D1",
            f"Crawl-delay {quoted(line.value)} is not a number of seconds, and is ignored",
            "Write a number >= 0, such as Crawl-delay: 2.5",
        )
    if line.field is Field.REQUEST_RATE and not request_rates((line.value,)):
        yield Finding(
            line.number,
            "D16",
            f"Request-rate {quoted(line.value)} is not a number of requests per time, and is ignored",
            "Write requests/seconds, such as Request-rate: 1/5, or 1/5 0600-0845 for some hours (UTC)",
        )
    if line.field is Field.VISIT_TIME and visit_time((line.value,)) is None:
        yield Finding(
            line.number,
            "D17",
            f"Visit-time {quoted(line.value)} is not a time of day, and is ignored",
            "Write start and end in UTC, such as Visit-time: 0600-0845",
        )


def value_findings(line: Line) -> Iterator[Finding]:
    """Check a Sitemap, or a field of another convention (D6, D15, D19, D20)."""
    if line.field is Field.SITEMAP:
        yield from _sitemap(line)
    if line.field is not Field.UNKNOWN:
        return
    match line.name.lower():
        case "noindex":
            yield Finding(
                line.number,
                "D15",
                "Noindex has no effect in robots.txt: no standard has it, and crawlers ignore it",
                "Send X-Robots-Tag: noindex or a robots meta tag, and let crawlers fetch the page, or they cannot see it",
            )
        case "content-usage":
            yield from _content_usage(line)
        case "content-signal":
            yield from _content_signal(line)
        case "license" if not _ABSOLUTE.match(line.value):
            yield Finding(
                line.number,
                "D20",
                f"the License {quoted(line.value)} is not an absolute URL, and is ignored",
                "Write it with its scheme and host: License: https://example.com/license.xml",
            )
        case _:
            pass


def _sitemap(line: Line) -> Iterator[Finding]:
    if not _ABSOLUTE.match(line.value):
        yield Finding(
            line.number,
            "D6",
            f"the Sitemap {quoted(line.value)} is not an absolute URL, and is ignored",
            "Write it with its scheme and host: Sitemap: https://example.com/sitemap.xml",
        )


def _content_usage(line: Line) -> Iterator[Finding]:
    _, text = path_and_text(line.value)
    said = preferences.usage(text)
    refused = preferences.refusals("content-usage", text, said)
    try:
        named = parse_dictionary(text)
    except Malformed as error:
        yield Finding(
            line.number,
            "D19",
            f"Content-Usage {quoted(text)} is void as a whole: {error}; {_reading(refused)}",
            "Write keys with y or n, separated by commas: Content-Usage: train-ai=n, search=y",
        )
        return
    for name in (name for name in named if name not in said):
        yield Finding(
            line.number,
            "D19",
            f"the value of {quoted(name)} in Content-Usage {quoted(text)} is not y or n; "
            + _reading([name] if name in refused else ()),
            f"Write {name}=n or {name}=y",
        )


def _reading(refused: Sequence[str]) -> str:
    """Say what `polite.usage` takes from a value that says nothing by its specification."""
    if not refused:
        return "it is ignored"
    named = ", ".join(map(quoted, refused[:_MOST_NAMED])) + (", ..." if len(refused) > _MOST_NAMED else "")
    return f"polite reads it as a refusal of {named}, others may ignore it"


def _content_signal(line: Line) -> Iterator[Finding]:
    _, text = path_and_text(line.value)
    for pair in text.lower().split(","):
        name, _, value = (part.strip() for part in pair.partition("="))
        if name in _YES_OR_NO and value not in ("yes", "no"):
            wanted, hint = "yes or no", f"Write {name}=no or {name}=yes"
        elif name == "use" and value not in _LEVELS:
            wanted, hint = (
                "immediate, reference or full",
                "Write use=immediate, the strictest, or another level",
            )
        elif name and not value:
            wanted, hint = "given", "Write keys with yes or no: Content-Signal: search=yes, ai-train=no"
        else:
            continue
        yield Finding(
            line.number,
            "D19",
            f"the value of {quoted(name)} in Content-Signal {quoted(text)} is not {wanted}",
            hint,
        )
