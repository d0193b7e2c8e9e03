"""What a site owner gets wrong, each with its code, its line and a hint; the codes X1 to X8 are the documents' own."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from polite.errors import shown
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.lines import Field, Line, lines, octets, readable
from polite.robots.pace import crawl_delay

# A hostile file has a mistake in every line; nobody reads beyond so many.
_MOST_FINDINGS = 1_000
# Looking for what a field was meant to be takes a while; for so many different spellings it is done.
_MOST_SPELLINGS = 500
_LONGEST_FIELD = 32
_ALIKE = 0.75

_RULES = {Field.ALLOW, Field.DISALLOW}
_MEANT = ("user-agent", "disallow", "allow", "sitemap", "crawl-delay")
# Written together, apart or with the hyphen lost: as far from the name as an honest other field is.
_WRITTEN_OTHERWISE = {
    "useragent": "user-agent",
    "user agent": "user-agent",
    "site-map": "sitemap",
    "crawldelay": "crawl-delay",
}
# Fields of other conventions: not known here, and no mistake.
_OTHERS = {
    "host",
    "clean-param",
    "request-rate",
    "visit-time",
    "noindex",
    "content-signal",
    "content-usage",
    "license",
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake. `line` is 1-based; `message` says what is wrong there, `hint` what to write instead."""

    line: int
    code: str
    message: str
    hint: str


def lint(body: bytes | str, dialect: Dialect = RFC9309) -> list[Finding]:
    """The mistakes of a robots.txt in the order of its lines, 1,000 at most. Never raises on content.

    X1 to X8 are rows of the Rambler document's list (docs/spec.md); D1 is a Crawl-delay that is no number of seconds.
    """
    octet_body = octets(body) if isinstance(body, str) else body
    check = _Check(dialect)
    findings: list[Finding] = []
    for line in lines(octet_body, dialect):
        findings += check.line(line)
        if len(findings) >= _MOST_FINDINGS:
            return sorted(findings[:_MOST_FINDINGS])
    findings += check.end()
    findings += _beyond(octet_body, dialect)
    return sorted(findings)


class _Check:
    """Walks through the lines as the parser does, and remembers which group it is in."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._agents: list[Line] = []
        self._forbids = False
        self._in_rules = False
        self._spellings: dict[str, str | None] = {}

    def line(self, line: Line) -> Iterator[Finding]:
        """The mistakes of one line, and of the group that ends with it."""
        name = line.name.lower()
        yield from self._mistyped(line, name)
        match line.field:
            case Field.USER_AGENT:
                yield from self._agent(line)
            case Field.ALLOW | Field.DISALLOW:
                yield from self._rule(line)
            case Field.CRAWL_DELAY if crawl_delay((line.value,)) is None:
                yield Finding(
                    line.number,
                    "D1",
                    f"Crawl-delay {_quoted(line.value)} is no number of seconds, and is ignored",
                    "Write a number that is not negative, such as Crawl-delay: 2.5",
                )
            case Field.UNKNOWN if name == "allow":
                # A crawler of this convention passes it over, but for the group it is the first of the rules.
                self._in_rules = bool(self._agents)
                yield Finding(
                    line.number,
                    "X5",
                    "Allow does not exist in this convention, and is ignored",
                    "List what may not be fetched, with Disallow",
                )
            case _:
                pass

    def end(self) -> Iterator[Finding]:
        """What is wrong with the last group."""
        yield from self._group_end()

    def _agent(self, line: Line) -> Iterator[Finding]:
        if self._in_rules:
            yield from self._group_end()
            self._agents, self._in_rules, self._forbids = [], False, False
        self._agents.append(line)
        if line.value.startswith("/"):
            yield Finding(
                line.number,
                "X1",
                f"a path, {_quoted(line.value)}, where the name of a crawler belongs",
                "The record is inverted: User-agent names the crawler, Disallow the path",
            )

    def _rule(self, line: Line) -> Iterator[Finding]:
        self._forbids = self._forbids or line.field is Field.DISALLOW
        self._in_rules = True
        field = line.field.value.capitalize()
        if not self._agents:
            yield Finding(
                line.number,
                "X6",
                f"{field} before any User-agent line binds nobody, and is ignored",
                "Put User-agent: * above it",
            )
        if len([part for part in line.value.split() if part[0] in "/*"]) > 1:
            yield Finding(
                line.number,
                "X2",
                f"several paths in one line: {_quoted(line.value)} is taken as one",
                f"Write a {field} line for each path",
            )
        if not self._dialect.has_wildcards and ("*" in line.value or line.value.endswith("$")):
            yield Finding(
                line.number,
                "X4",
                f"{_quoted(line.value)} has a wildcard, which this convention takes as an ordinary character",
                "Write the start of the path, without * and $",
            )

    def _group_end(self) -> Iterator[Finding]:
        if self._agents and not self._forbids:
            first = self._agents[0]
            yield Finding(
                first.number,
                "X3",
                f"the group of {_quoted(first.value)} has no Disallow line",
                "Write Disallow: with an empty path when all may be fetched",
            )

    def _mistyped(self, line: Line, name: str) -> Iterator[Finding]:
        if line.field is Field.NONE:
            # A line without its colon: the field is its first word.
            name = line.value.partition(" ")[0].partition("\t")[0].lower()
            if name in _MEANT:
                yield Finding(
                    line.number,
                    "X7",
                    f"the colon is missing behind {_quoted(name)}",
                    f"Write {name.capitalize()}: ...",
                )
            return
        if name in _MEANT or name in _OTHERS:
            return
        meant = self._meant(name)
        if meant is not None:
            yield Finding(
                line.number,
                "X7",
                f"{_quoted(line.name)} is no field; many crawlers ignore the line",
                f"Write {meant.capitalize()}:",
            )

    def _meant(self, name: str) -> str | None:
        """What a spelling was probably meant to be; worked out once for each."""
        if name not in self._spellings:
            if len(self._spellings) >= _MOST_SPELLINGS or len(name) > _LONGEST_FIELD:
                return None
            alike = get_close_matches(name, _MEANT, n=1, cutoff=_ALIKE)
            self._spellings[name] = _WRITTEN_OTHERWISE.get(name) or (alike[0] if alike else None)
        return self._spellings[name]


def _beyond(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """X8: what lies beyond the cap does not count (H9)."""
    if len(body) > dialect.max_bytes:
        head = body[: dialect.max_bytes].replace(b"\r\n", b"\n")
        yield Finding(
            1 + head.count(b"\n") + head.count(b"\r"),
            "X8",
            f"the file has {len(body)} octets; from here on, beyond {dialect.max_bytes}, it does not count",
            "Join rules by their common start, or put what is excluded into one folder",
        )


def _quoted(text: str) -> str:
    return repr(shown(readable(text)))
