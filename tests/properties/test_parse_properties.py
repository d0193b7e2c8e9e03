"""What holds for every file, agent and path: no exception, one answer, and that of a slow and obvious matcher."""

import re
import string
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lines import Field, lines
from polite.robots.parse import parse
from tests.support import examples

dialects = st.sampled_from([CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE])
agents = st.sampled_from(["a", "a-b", "a-b-c/1.0", "b", "zz9"])
FIELDS = "User-agent user-agent Disallow Allow disalow Sitemap Crawl-delay Noindex Host Request-rate"
fields = st.sampled_from(["", *FIELDS.split()])
values = st.one_of(
    st.sampled_from(["*", "a", "a-b", "A/1", "zz9", "/", "/a", "/*a$", "", "5", "1/5"]),
    st.text("/ab*$%2Ac4'ü ", max_size=12),
)
file_lines = st.one_of(
    st.builds("{}:{}".format, fields, values),
    st.builds("{} {}".format, fields, values),
    st.sampled_from(["", "#", "\r", "\0"]),
)
files = st.lists(file_lines, max_size=20).map("\n".join)
paths = st.text("/ab*$%2Ac4'ü ?", max_size=12).map("/{}".format)
anything = st.one_of(
    st.binary(max_size=300),
    files.map(str.encode),
    st.text(max_size=100).map(lambda t: t.encode("utf-8", "replace")),
)


@given(anything, dialects, agents, st.text(max_size=20).map("/{}".format))
def test_nothing_in_a_file_or_path_is_an_error(body: bytes, dialect: Dialect, agent: str, path: str):
    robots = parse(body, dialect)

    decision = robots.decide(agent, path)

    assert decision.allowed in (True, False)
    assert str(decision)
    assert repr(decision)
    assert isinstance(decision.overruled, tuple)
    assert len(list(lines(body, dialect))) <= len(body)
    assert all(line.column >= 1 for line in lines(body, dialect))
    assert isinstance(robots.extensions, dict)


@given(st.text(max_size=200) | files, dialects, agents, paths)
def test_bytes_and_str_decide_alike(body: str, dialect: Dialect, agent: str, path: str):
    as_bytes = parse(body.encode("utf-8", "surrogatepass"), dialect)
    as_str = parse(body, dialect)
    assert as_str.decide(agent, path) == as_bytes.decide(agent, path)
    assert (as_str.groups, as_str.sitemaps) == (as_bytes.groups, as_bytes.sitemaps)


@given(files, dialects, agents, paths)
def test_a_group_for_another_agent_changes_nothing(body: str, dialect: Dialect, agent: str, path: str):
    before = parse(body, dialect).decide(agent, path)
    # A rule at the beginning of the file would join the group before it.
    other = "User-agent: nobody\nAllow: /a\nDisallow: /\nUser-agent: unknown\nDisallow: /\n"
    after = parse(other + body, dialect)
    assert after.decide(agent, path).allowed is before.allowed
    assert not after.decide("nobody", "/b")


@given(files, dialects)
def test_lines_and_groups_agree_on_what_a_rule_is(body: str, dialect: Dialect):
    read = {
        line.number for line in lines(body.encode(), dialect) if line.field in (Field.ALLOW, Field.DISALLOW)
    }
    named = {line.number for line in lines(body.encode(), dialect) if line.field is Field.USER_AGENT}
    groups = parse(body, dialect).groups
    assert {number for group in groups for number in group.lines} == named
    assert {r.line for group in groups for r in group.rules} == {n for n in read if named and n > min(named)}


Unit = tuple[str, int]

# Characters whose escapes equal them, but for `*` and `$`, which are special: by the letter of the RFC, and by default.
UNRESERVED = string.ascii_letters + string.digits + "-._~"
EXCLUDED = UNRESERVED + " \"<>\\^`{|}'"
STRICT = replace(RFC9309, name="strict", excluded_equal_escapes=False)


def units(text: str, equal: str) -> list[Unit]:
    """A path as RFC 9309 compares it: octets meant as themselves, and escapes that must stay escapes."""
    found: list[Unit] = []
    octets = text.encode("utf-8", "surrogatepass")
    while octets:
        escape = re.match(rb"%([0-9A-Fa-f]{2})", octets)
        octet = int(escape[1], 16) if escape else octets[0]
        stays = escape and octet < 128 and chr(octet) not in equal + "*$"
        found.append(("escape" if stays else "special" if escape and chr(octet) in "*$" else "octet", octet))
        octets = octets[3 if escape else 1 :]
    return found


def reference(rules: list[tuple[bool, str]], path: str, equal: str) -> bool:
    """The longest of the rules whose regular expression matches, the slow way; allow wins a tie."""
    asked = "".join(spelling(unit) for unit in units(path, equal))
    matching = [
        (length(rule, equal), allows)
        for allows, rule in rules
        if rule and re.match(expression(rule, equal), asked, re.DOTALL)
    ]
    return max(matching, default=(0, True))[1]


def spelling(unit: Unit) -> str:
    """An escape begins with a percent sign, as do octets that are no ASCII: one that a rule ends with is a prefix of it."""
    return f"%{unit[1]:02X}" if unit[0] == "escape" or unit[1] >= 128 else chr(unit[1])


def expression(rule: str, equal: str) -> str:
    parts = units(rule, equal)
    end = parts.pop() == ("octet", ord("$")) if parts[-1] == ("octet", ord("$")) else False
    regex = [".*" if unit == ("octet", ord("*")) else re.escape(spelling(unit)) for unit in parts]
    return "".join(regex) + (r"\Z" if end else "")


def length(rule: str, equal: str) -> int:
    """Octets of the normal form: an escape has three, and so has what the dialect takes for its escape."""
    escaped = EXCLUDED.removeprefix(UNRESERVED).replace("'", "") if equal == EXCLUDED else ""
    return sum(
        1 if kind == "octet" and octet < 128 and chr(octet) not in escaped else 3
        for kind, octet in units(rule, equal)
    )


SPELT = "/ a b * $ %2A %24 %61 %2f %2F %c3%BC ü %20 ' %27 % ?"
spelt = st.lists(st.sampled_from([" ", *SPELT.split()]), max_size=8).map("".join)


def file_of(rules: list[tuple[bool, str]]) -> str:
    return "\n".join(["user-agent: *", *(f"{'allow' if a else 'disallow'}: {rule}" for a, rule in rules)])


@examples(500, fast=50)
@given(
    st.lists(st.tuples(st.booleans(), spelt), max_size=6),
    spelt.map("/{}".format),
    st.sampled_from([(STRICT, UNRESERVED), (RFC9309, EXCLUDED)]),
)
@example([(False, "/%")], "/%2f", (STRICT, UNRESERVED))
@example([(False, "/%")], "/%c3%BC", (STRICT, UNRESERVED))
@example([(False, "/a b")], "/a%20b", (STRICT, UNRESERVED))
@example([(False, "/a b")], "/a%20b", (RFC9309, EXCLUDED))
def test_a_slow_and_obvious_matcher_gives_the_same_answer(rules, path, read):
    dialect, equal = read
    rules = [(allows, rule.strip(" ")) for allows, rule in rules]
    bound = parse(file_of(rules), dialect).rules_for("ExampleBot")
    expected = reference(rules, path, equal)
    assert bound.allows(path) is bound.decide(path).allowed is expected


crowded = st.text("ab/", max_size=4)
crowd = st.lists(
    st.builds(
        "{}{}{}{}{}".format, st.sampled_from(["/", "*", "/a", "/b/"]), *[crowded, st.sampled_from("**$")] * 2
    ),
    min_size=60,
    max_size=120,
)


@examples(150, fast=15)
@given(
    st.lists(st.booleans(), min_size=120, max_size=120),
    crowd,
    st.lists(st.text("ab/?", max_size=12), max_size=8),
)
def test_in_a_crowd_of_rules_the_same_one_wins(allowing: list[bool], paths_: list[str], asked: list[str]):
    rules = list(zip(allowing, paths_, strict=False))
    bound = parse(file_of(rules)).rules_for("ExampleBot")
    for path in (f"/{each}" for each in asked):
        expected = reference(rules, path, UNRESERVED)
        assert bound.allows(path) is bound.decide(path).allowed is expected
