"""The checks of a robots.txt, from the file as a whole to rules that never decide; and `Finding`, one mistake."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from polite.errors import redact_url
from polite.http.structured_fields import Malformed, parse_dictionary
from polite.pace import crawl_delay, request_rates, visit_time
from polite.robots.agent import names_all
from polite.robots.decision import Rule, RuleLine, to_rule
from polite.robots.dialect import Dialect
from polite.robots.groups import Group
from polite.robots.lines import ABSOLUTE_URL, UTF_8_MARK, WHITE, Field, Line, readable, rows, wide_encoding
from polite.robots.parse import parse
from polite.robots.signals import path_and_text, read_usage, refusals


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


# What to write instead, where that is the same for each mistake with the code.
_HINTS: Mapping[str, str] = {
    "X1": "Write the crawler's name after User-agent, and the path after Disallow",
    "X3": "Write Disallow: with an empty path if everything may be fetched",
    "X4": "Write the start of the path, without * and $",
    "X5": "List the paths that may not be fetched, with Disallow",
    "X6": "Put User-agent: * above it",
    "X8": "Join rules with a common start, or put excluded pages into one folder",
    "D1": "Write a number >= 0, such as Crawl-delay: 2.5",
    "D2": "Save it as UTF-8 without a byte order mark",
    "D3": "Save it as UTF-8 without a byte order mark",
    "D4": "Serve plain text at /robots.txt, or respond 404 if there is no such file",
    "D5": "Write the path from the root of the site, such as /folder/",
    "D6": "Write it with its scheme and host: Sitemap: https://example.com/sitemap.xml",
    "D7": "Remove it, or make it longer than the rule that wins",
    "D8": "Write one group for each crawler",
    "D9": "Write the name alone, such as User-agent: ExampleBot, or * for all",
    "D10": "Put all names of the group first, and at least one Disallow line at its end",
    "D12": "Serve plain text in UTF-8 at /robots.txt; a compressed response needs its Content-Encoding",
    "D14": "Write a User-agent line for each crawler, one below the other",
    "D15": "Send X-Robots-Tag: noindex or a robots meta tag, and let crawlers fetch the page, or they cannot see it",
    "D16": "Write requests/seconds, such as Request-rate: 1/5, or 1/5 0600-0845 for some hours (UTC)",
    "D17": "Write start and end in UTC, such as Visit-time: 0600-0845",
    "D18": "Write %23 for a # in a path, or a space before a comment; URLs are compared without their fragment",
    "D20": "Write it with its scheme and host: License: https://example.com/license.xml",
}


# What is wrong, if one sentence says it for each mistake with the code. Its places are for parts of the line, and how it is read.
_MESSAGES: Mapping[str, str] = {
    "X1": "{} is a path where the name of a crawler is expected",
    "X2": "several paths in one line: {} is read as one",
    "X3": "the group of {} has no Disallow line",
    "X4": "{} has a wildcard, which is an ordinary character in this dialect",
    "X5": "Allow does not exist in this dialect, and is ignored",
    "X6": "{} before any User-agent line applies to no crawler, and is ignored",
    "X8": "the file has {} octets; octets beyond {}, from here on, are ignored",
    "D1": "Crawl-delay {} is not a number of seconds, and is ignored",
    "D2": "the file starts with a byte order mark, which some crawlers read as a part of the first field",
    "D3": "the file is UTF-16 or UTF-32; {}",
    "D4": "this is an HTML page, not a robots.txt: only lines that look like rules by accident count",
    "D5": "the path {} does not start with a slash, and matches nothing",
    "D6": "the Sitemap {} is not an absolute URL, and is ignored",
    "D7": "{} {}: {}",
    "D8": "a second group for {}: the first is at line {}, and {}",
    "D9": "{}",
    "D10": "{} is between User-agent lines: for some crawlers the group ends there, for others it continues after the next name",
    "D12": "the file is {}, not text: only lines that look like rules by accident count",
    "D13": "the path {} is not UTF-8: an octet is read as {}, which no URL in UTF-8 has",
    "D14": "{} names in one line: {} {}",
    "D15": "Noindex has no effect in robots.txt: no standard has it, and crawlers ignore it",
    "D16": "Request-rate {} is not a number of requests per time, and is ignored",
    "D17": "Visit-time {} is not a time of day, and is ignored",
    "D18": "# starts a comment, so {} is read as {}",
    "D20": "the License {} is not an absolute URL, and is ignored",
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


def found(line: int, code: str, *parts: object, hint: str = "") -> Finding:
    """Return a mistake with the message of its code, which has places for the parts, and a hint, by default that of its code."""
    return Finding(line, code, _MESSAGES[code].format(*parts), hint or _HINTS[code])


def quoted(text: str) -> str:
    """Return a part of a line, one character per octet, as a message may show it."""
    return repr(redact_url(readable(text)))


_NAME = re.compile(r"[A-Za-z0-9_-]*")
_LETTERED_NAME = re.compile(r"[A-Za-z_-]*")
_SEPARATORS = re.compile(r"[,;|]")
# One of several names: words, and perhaps a version.
_LISTED = re.compile(r"\*|[A-Za-z][A-Za-z0-9_ -]*+(?:/[0-9.]++)?", re.ASCII)
# Names with spaces, such as "Download Ninja", are frequent. Words that all end so are names of several crawlers.
_CRAWLER = re.compile(r"[A-Za-z0-9_-]+(?:bot|spider|crawler)(?:/[0-9.]*)?", re.IGNORECASE | re.ASCII)
_LONGEST_WORD = 64
_MOST_NAMES = 64


def agent_findings(line: Line, group: int, first: dict[str, int], dialect: Dialect) -> Iterator[Finding]:
    """Check a user-agent line (X1, D8, D9, D14).

    Args:
        line: the line.
        group: the first line of its group.
        first: the first group for each name, which is noted there.
        dialect: how the file is read.
    """
    name = "*" if names_all(line.value) else _start(_NAME, line.value)
    heard = _start(_LETTERED_NAME, name) if dialect.lettered_names_only and name != "*" else name
    if line.value.startswith("/"):
        yield found(line.number, "X1", quoted(line.value))
    elif len(named := _several(line.value)) > 1:
        reading = f"is read as {quoted(name)}" if name else "names no crawler"
        yield found(line.number, "D14", len(named), quoted(line.value), reading)
    elif name != "*" and (not name.strip("0123456789_-") or name == "mozilla"):
        # Every browser calls itself Mozilla, so crawlers are found by another name, or not at all.
        yield found(line.number, "D9", f"no crawler has the name {quoted(line.value)}")
    elif heard != name:
        message = f"in this dialect names end before a digit: {quoted(line.value)} is read as {quoted(heard)}"
        yield found(line.number, "D9", message, hint="In this dialect no line can name this crawler alone")
    if name and (start := first.setdefault(name, group)) != group:
        both = "both apply together" if dialect.combines_groups else "only the first one applies"
        yield found(line.number, "D8", quoted(name), start, both)


def _several(value: str) -> list[str]:
    """Return the names that a line lists with separators, or with spaces only. Text in parentheses is about one crawler."""
    text = value.partition("(")[0]
    listed = [name for part in _SEPARATORS.split(text, _MOST_NAMES)[:_MOST_NAMES] if (name := part.strip())]
    if len(listed) > 1:
        return listed if all(map(_LISTED.fullmatch, listed)) else []
    words = text.split(maxsplit=_MOST_NAMES)
    return words if all(len(word) <= _LONGEST_WORD and _CRAWLER.fullmatch(word) for word in words) else []


def _start(pattern: re.Pattern[str], value: str) -> str:
    """Return the name that a value starts with, in lower case."""
    found = pattern.match(value)
    return found[0].lower() if found else ""


_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n\f]*+<(?:!doctype|!--|\?xml|[a-z])", re.IGNORECASE)
# In UTF-16, every second octet of ASCII text is NUL; in honest UTF-8 none is.
_LOOKED_AT = 1_024
_NUL_SHARE = 4
# Control characters that no text has in any encoding. Text has tab, line ends, form feed, and escape (in ISO-2022).
_CONTROLS = bytes(octet for octet in (*range(0x20), 0x7F) if octet not in b"\t\n\v\f\r\x1b")
# Of random octets, one of ten is such a character.
_CONTROL_SHARE = 32
# So many are strays, however short the text is.
_STRAY_CONTROLS = 3
# How other kinds of files start.
_SIGNATURES = {
    b"\x1f\x8b": "gzip data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"PK\x03\x04": "a ZIP archive",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
}


def is_wide(body: bytes) -> bool:
    """Return whether it is UTF-16 or UTF-32, with or without a byte order mark."""
    head = body[:_LOOKED_AT]
    if head.startswith(_WIDE_MARKS):
        return True
    rest = head.replace(b"\0", b"")
    return head.count(0) * _NUL_SHARE > len(head) and rest != b"" and _is_text(rest)


def is_binary(body: bytes) -> bool:
    """Return whether its octets are text in no encoding. Then lines that look like rules do so by accident."""
    if body.startswith(tuple(_SIGNATURES)):
        return True
    return not is_wide(body) and not _is_text(body[:_LOOKED_AT])


def _is_text(head: bytes) -> bool:
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls <= max(_STRAY_CONTROLS, len(head) // _CONTROL_SHARE)


def file_findings(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """Check a file for D2 to D4, D12 and X8. The file need not be cut at the dialect's limit."""
    if is_wide(body):
        read = dialect.reads_utf16 and wide_encoding(body)
        yield found(1, "D3", "polite reads it, few crawlers do" if read else "polite finds no rule in it")
    elif body.startswith(UTF_8_MARK):
        yield found(1, "D2")
    if is_binary(body):
        kind = next((name for start, name in _SIGNATURES.items() if body.startswith(start)), "binary data")
        yield found(1, "D12", kind)
    markup = _MARKUP.match(body, 0, dialect.max_bytes)
    if markup is not None:
        yield found(len(rows(body[: markup.end()], dialect)), "D4")
    if len(body) > dialect.max_bytes:
        yield found(len(rows(body, dialect)), "X8", len(body), dialect.max_bytes)


# Characters that URL parsers escape in a path and in a query, so no URL has them (WHATWG URL, query percent-encode set); and other
# characters that RFC 3986 excludes, which some parsers do not escape.
_EXCLUDED = re.compile(r'[\x00-\x20"<>\x7f]')
_DISPUTED = re.compile(r"[\\^`{|}]")
# Below this, octets of Latin-1 are no letters, but those of other code pages are.
_FIRST_OF_LATIN_1 = 0xA0


def path_findings(line: Line, dialect: Dialect, *, inverted: bool) -> Iterator[Finding]:
    """Check a rule's path (X2, X4, D5, D11, D13, D18).

    Args:
        line: the rule.
        dialect: how the file is read.
        inverted: whether the group has a path instead of a name (X1), so a path without a slash is its consequence.
    """
    yield from _characters(line, dialect)
    yield from _encoding(line)
    # A comment follows white space, or has white space after its `#`.
    before, mark, after = line.text.partition("#")
    if mark and line.value and before[-1:] not in WHITE and after[:1] not in ("", *WHITE):
        meant = f"{line.value}#{after.split(maxsplit=1)[0]}"
        yield found(line.number, "D18", quoted(meant), quoted(line.value))
    if line.value[:1] not in ("", "/", "*") and not dialect.supplies_slash and not inverted:
        yield found(line.number, "D5", quoted(line.value))
    if not dialect.has_wildcards and ("*" in line.value or line.value.endswith("$")):
        yield found(line.number, "X4", quoted(line.value))


def _characters(line: Line, dialect: Dialect) -> Iterator[Finding]:
    if len([part for part in line.value.split() if part[0] in "/*"]) > 1:
        hint = f"Write a {line.field.value.capitalize()} line for each path"
        yield found(line.number, "X2", quoted(line.value), hint=hint)
    elif raw := _EXCLUDED.search(line.value) or _DISPUTED.search(line.value):
        yield Finding(line.number, "D11", _unfit(raw[0], dialect), f"Write %{ord(raw[0]):02X} instead")


def _unfit(character: str, dialect: Dialect) -> str:
    """Say what is wrong with an unescaped character in a path, and how polite reads it."""
    if dialect.excluded_equal_escapes:
        reading = f"it as %{ord(character):02X}; for other crawlers the rule matches nothing"
    elif _EXCLUDED.match(character):
        reading = "it as it is, and no URL has it: the rule matches nothing"
    else:
        reading = "it as it is: the rule matches nothing if a URL has its escape"
    return f"{character!r} is not escaped in the path; polite reads {reading}"


def _encoding(line: Line) -> Iterator[Finding]:
    """Find a path in another encoding than UTF-8, which URLs have (M5)."""
    octets = line.value.encode("latin-1")
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError as error:
        octet = octets[error.start]
    else:
        return
    hint = "Save the file as UTF-8, or write the escapes that the site's URLs have"
    if octet >= _FIRST_OF_LATIN_1:
        letter = chr(octet)
        hint += f"; {letter!r} is {''.join(f'%{each:02X}' for each in letter.encode())} in UTF-8"
    yield found(line.number, "D13", quoted(line.value), f"%{octet:02X}", hint=hint)


# The keys of Content-Signal that are answered with yes or no (Content Signals policy).
_YES_OR_NO = {"search", "ai-input", "ai-train"}
_LEVELS = {"immediate", "reference", "full"}
# Labels that a message names.
_MOST_NAMED = 5


# What a value must be, and the code of one that is not. Of a field that polite does not know, by its name.
_VALUES: Mapping[Field | str, tuple[str, Callable[[str], object]]] = {
    Field.CRAWL_DELAY: ("D1", lambda value: crawl_delay((value,)) is not None),
    Field.REQUEST_RATE: ("D16", lambda value: request_rates((value,))),
    Field.VISIT_TIME: ("D17", lambda value: visit_time((value,)) is not None),
    Field.SITEMAP: ("D6", ABSOLUTE_URL.match),
    "license": ("D20", ABSOLUTE_URL.match),
    "noindex": ("D15", lambda _: False),
}


def value_findings(line: Line) -> Iterator[Finding]:
    """Check the value of a field that is neither a name nor a rule (D1, D6, D15 to D17, D19, D20)."""
    name = line.name.lower() if line.field is Field.UNKNOWN else line.field
    code, is_right = _VALUES.get(name, ("", bool))
    if code and not is_right(line.value):
        yield found(line.number, code, quoted(line.value))
    match name:
        case "content-usage":
            yield from _content_usage(line)
        case "content-signal":
            yield from _content_signal(line)


def _content_usage(line: Line) -> Iterator[Finding]:
    _, text = path_and_text(line.value)
    said = read_usage(text)
    refused = refusals("content-usage", text, said)
    try:
        named = parse_dictionary(text)
    except Malformed as error:
        wrong = f"Content-Usage {quoted(text)} is void as a whole: {error}; {_reading(refused)}"
        hint = "Write keys with y or n, separated by commas: Content-Usage: train-ai=n, search=y"
        yield Finding(line.number, "D19", wrong, hint)
        return
    for name in (name for name in named if name not in said):
        wrong = f"the value of {quoted(name)} in Content-Usage {quoted(text)} is not y or n"
        reading = _reading([name] if name in refused else ())
        yield Finding(line.number, "D19", f"{wrong}; {reading}", f"Write {name}=n or {name}=y")


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
            wanted = "immediate, reference or full"
            hint = "Write use=immediate, the strictest, or another level"
        elif name and not value:
            wanted, hint = "given", "Write keys with yes or no: Content-Signal: search=yes, ai-train=no"
        else:
            continue
        wrong = f"the value of {quoted(name)} in Content-Signal {quoted(text)} is not {wanted}"
        yield Finding(line.number, "D19", wrong, hint)


# Limits, so a hostile file does not make the search long.
_MOST_RULES = 1_000
_MOST_PATHS = 5_000
_LONGEST_PATH = 300
# Characters compared: each example with each rule that has a wildcard. About 0.2 s.
_MOST_COMPARED = 20_000_000
# Stands for any run of characters. Only a `*` matches it, since no rule contains a line end.
_ANYTHING = "\n"
_NOT_ASCII = re.compile("[\x80-\xff]")


def shadowed_rules(groups: Iterable[Group], dialect: Dialect) -> Iterator[tuple[Rule, Rule]]:
    """Yield each shadowed rule, and the rule that wins instead.

    Skips groups of more than 1,000 rules, and groups whose wildcard rules would take too long.
    """
    paths = compared = 0
    for group in groups:
        if len(group.rule_lines) > _MOST_RULES:
            continue
        paths += len(group.rule_lines)
        if paths > _MOST_PATHS:
            return
        examples = [path for _, path, _ in group.rule_lines if len(path) <= _LONGEST_PATH]
        work = sum(map(len, examples)) * sum("*" in path for _, path, _ in group.rule_lines)
        if compared + work <= _MOST_COMPARED:
            compared += work
            yield from _in_group(group, dialect)


def _in_group(group: Group, dialect: Dialect) -> Iterator[tuple[Rule, Rule]]:
    alone = "user-agent:*\n" + "".join(
        f"{'allow' if allows else 'disallow'}:{path}\n" for allows, path, _ in group.rule_lines
    )
    rules = parse(alone.encode("latin-1"), dialect).rules_for("anybody")
    for position, line in enumerate(group.rule_lines):
        example = _example(line, dialect)
        winner = None if example is None else rules.decide(example).rule
        # Line 1 is the user-agent line.
        if winner is not None and winner.line != position + 2:
            yield to_rule(line), to_rule(group.rule_lines[winner.line - 2])


def _example(line: RuleLine, dialect: Dialect) -> str | None:
    """Return a path that stands for all paths which the rule matches.

    None if there is no such path, or if it is not searched.
    """
    allows, path, _ = line
    if not path or len(path) > _LONGEST_PATH:
        return None
    if allows and dialect.index_is_folder and "index.htm" in path:
        return None  # it also allows the folder
    anchored = dialect.has_wildcards and path.endswith("$")
    if anchored and dialect.dollar_is_both:
        return None  # it also matches what no example of the other reading stands for
    path = path.removesuffix("$") if anchored else path + _ANYTHING
    if dialect.has_wildcards:
        path = path.replace("*", _ANYTHING)
    if path.startswith(_ANYTHING) or (dialect.supplies_slash and not path.startswith("/")):
        path = "/" + path
    return _NOT_ASCII.sub(lambda octet: f"%{ord(octet[0]):02X}", path) if path.startswith("/") else None
