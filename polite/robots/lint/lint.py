"""lint: what a site owner gets wrong, each mistake with code, line and hint."""

from collections.abc import Iterator
from difflib import get_close_matches

from polite.robots.dialect import RFC9309, Dialect
from polite.robots.groups import Sections, groups
from polite.robots.lines import Field, Line, fields_of, lines, octets, text, wide_encoding
from polite.robots.lint import checks
from polite.robots.signals import SIGNAL_FIELDS

# A hostile file has a mistake in every line.
_MOST_FINDINGS = 1_000
# Spellings whose intended field is searched, which is slow.
_MOST_SPELLINGS = 500
_LONGEST_FIELD = 32
_ALIKE = 0.75

_MEANT = ("user-agent", "disallow", "allow", "sitemap", "crawl-delay")
# Spellings that are as far from the name as an honest other field is.
_WRITTEN_OTHERWISE = {
    "useragent": "user-agent",
    "user agent": "user-agent",
    "site-map": "sitemap",
    "crawldelay": "crawl-delay",
}
_PACES = {Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME}
# Fields of other conventions. They are unknown here, but no mistake.
_OTHERS = {"host", "request-rate", "visit-time", "noindex", *SIGNAL_FIELDS}


def lint(body: bytes | str, dialect: Dialect = RFC9309) -> list[checks.Finding]:
    """Return the mistakes of a robots.txt in the order of its lines, 1,000 at most.

    Never raises on content.

        >>> for finding in lint("User-agent: *\\nDissalow: /private/"):
        ...     print(finding.line, finding.code, finding.message)
        2 X7 'Dissalow' is not a field; polite reads it as Disallow, many crawlers ignore the line

    Args:
        body: the file.
        dialect: how it is read.

    Raises:
        TypeError: if an argument has another type.
    """
    if not isinstance(body, bytes | str):
        raise TypeError(f"a robots.txt must be bytes or str, got {type(body).__name__}")
    if not isinstance(dialect, Dialect):
        raise TypeError(f"dialect must be a Dialect, got {dialect!r}; see polite.dialect(name)")
    octet_body = octets(body) if isinstance(body, str) else body
    findings = list(checks.file_findings(octet_body, dialect))
    unread = checks.is_wide(octet_body) and not (dialect.reads_utf16 and wide_encoding(octet_body))
    if unread or checks.is_binary(octet_body):
        return findings
    check = _LineChecks(dialect, is_page=any(finding.code == "D4" for finding in findings))
    for line in lines(octet_body, dialect):
        if check.is_silent(line):
            continue
        findings += check.line(line)
        if len(findings) >= _MOST_FINDINGS:
            return sorted(findings[:_MOST_FINDINGS])
    findings += check.group_end()
    findings += _shadowed(octet_body, dialect)
    return sorted(findings)[:_MOST_FINDINGS]


def _shadowed(body: bytes, dialect: Dialect) -> Iterator[checks.Finding]:
    for rule, winner in checks.shadowed_rules(groups(Sections(text(body, dialect), dialect)), dialect):
        because = "never decides, because another rule wins for every path that it matches"
        if rule.pattern == winner.pattern and rule.allows == winner.allows:
            because = "is written twice"
        yield checks.found(rule.line, "D7", rule, because, winner)


def _mistyped(line: Line, wrong: str, hint: str) -> checks.Finding:
    """Return the mistake of a line that breaks the grammar, and how polite reads it."""
    reading = "polite ignores the line, as many crawlers do"
    if line.field not in {Field.UNKNOWN, Field.NONE}:
        reading = f"polite reads it as {line.field.value.capitalize()}, many crawlers ignore the line"
    return checks.Finding(line.number, "X7", f"{wrong}; {reading}", hint)


def _unknown(line: Line, written: str, meant: str) -> checks.Finding:
    return _mistyped(line, f"{checks.quoted(written)} is not a field", f"Write {meant.capitalize()}:")


def _colonless(line: Line, name: str) -> checks.Finding:
    wrong = f"the colon is missing after {checks.quoted(name)}"
    return _mistyped(line, wrong, f"Write {name.capitalize()}: ...")


def _longer(name: str) -> str | None:
    """Return the field that a name in lower case starts with, as `Dialect.extends_fields` reads it."""
    return next((each for each in _MEANT if name.startswith(each)), None)


class _LineChecks:
    """Checks the lines one by one. Tracks the group they belong to, as the parser does."""

    def __init__(self, dialect: Dialect, *, is_page: bool) -> None:
        self._dialect = dialect
        self._is_page = is_page
        self._agents: list[Line] = []
        self._forbids = False
        self._in_rules = False
        self._inverted = False
        self._pace: Line | None = None
        self._named: dict[str, int] = {}  # the first group for each name
        self._spellings: dict[str, str | None] = {}

    def is_silent(self, line: Line) -> bool:
        """Return whether lines of this field are known to have no mistake and no effect on others."""
        return line.field is Field.UNKNOWN and self._spellings.get(line.name, line.name) is None

    def line(self, line: Line) -> Iterator[checks.Finding]:
        """Check one line, and the group that ends with it."""
        name = line.name.lower()
        yield from self._mistyped(line, name)
        match line.field:
            case Field.USER_AGENT:
                yield from self._agent(line)
            case Field.ALLOW | Field.DISALLOW:
                yield from self._rule(line)
            case Field.UNKNOWN if name == "allow":
                # A crawler of this dialect ignores it, but it ends the user-agent lines of the group.
                self._in_rules = bool(self._agents)
                yield checks.found(line.number, "X5")
            case Field.UNKNOWN if self._is_page:
                pass  # a page of HTML is full of unknown "fields"
            case _:
                if line.field in _PACES and self._agents and not self._in_rules:
                    self._pace = line
                yield from checks.value_findings(line)

    def _agent(self, line: Line) -> Iterator[checks.Finding]:
        if self._in_rules:
            yield from self.group_end()
            self._agents, self._in_rules, self._forbids, self._inverted = [], False, False, False
        elif self._pace is not None:
            yield checks.found(self._pace.number, "D10", self._pace.field.value.capitalize())
        self._pace = None
        self._agents.append(line)
        self._inverted = self._inverted or line.value.startswith("/")
        yield from checks.agent_findings(line, self._agents[0].number, self._named, self._dialect)

    def _rule(self, line: Line) -> Iterator[checks.Finding]:
        self._forbids = self._forbids or line.field is Field.DISALLOW
        self._in_rules = self._in_rules or fields_of(self._dialect).separates(line.text)
        if not self._agents:
            yield checks.found(line.number, "X6", line.field.value.capitalize())
        yield from checks.path_findings(line, self._dialect, inverted=self._inverted)

    def group_end(self) -> Iterator[checks.Finding]:
        """Check the group that ends here, or with the file."""
        if self._agents and not self._forbids:
            first = self._agents[0]
            yield checks.found(first.number, "X3", checks.quoted(first.value))

    def _mistyped(self, line: Line, name: str) -> Iterator[checks.Finding]:
        if line.field is Field.NONE:
            # Without a colon, the field is the first word.
            words = [word for word in line.value.replace("\t", " ").split(" ") if word]
            name = words[0].lower()
            if name in _MEANT:
                yield _colonless(line, name)
            elif len(words) == 2 and (longer := _longer(name)) is not None:
                yield _unknown(line, words[0], longer)
            return
        if name in _MEANT and ":" not in line.text.partition("#")[0]:
            # Some crawlers accept the line (`Dialect.colon_optional`), others do not.
            yield _colonless(line, name)
            return
        if name in _MEANT or name in _OTHERS:
            return
        # A dialect may read as a field what starts with a misspelling of it.
        read = None if line.field is Field.UNKNOWN else line.field.value
        meant = read or _longer(name) or self._meant(name)
        if meant is not None:
            yield _unknown(line, line.name, meant)

    def _meant(self, name: str) -> str | None:
        """Return the field that a spelling was probably meant to be. Cached for each spelling."""
        if name not in self._spellings:
            if len(self._spellings) >= _MOST_SPELLINGS or len(name) > _LONGEST_FIELD:
                return None
            alike = get_close_matches(name, _MEANT, n=1, cutoff=_ALIKE)
            self._spellings[name] = _WRITTEN_OTHERWISE.get(name) or (alike[0] if alike else None)
        return self._spellings[name]
