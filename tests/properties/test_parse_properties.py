"""What holds for every file, agent and path: no exception, one answer, and that of a slow and obvious matcher."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lines import Field, lines
from polite.robots.parse import parse

dialects = st.sampled_from([CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE])
agents = st.sampled_from(["a", "a-b", "a-b-c/1.0", "b", "zz9"])
fields = st.sampled_from(
    [
        "User-agent",
        "user-agent",
        "Disallow",
        "Allow",
        "disalow",
        "Sitemap",
        "Crawl-delay",
        "Noindex",
        "Host",
        "Request-rate",
        "",
    ]
)
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
    assert as_str.groups == as_bytes.groups
    assert as_str.sitemaps == as_bytes.sitemaps


@given(files, dialects, agents, st.lists(paths, max_size=5))
def test_allows_and_decide_agree(body: str, dialect: Dialect, agent: str, asked: list[str]):
    rules = parse(body, dialect).rules_for(agent)

    for path in asked:
        decision = rules.decide(path)
        assert rules.allows(path) is decision.allowed
        assert decision.rule is None or decision.rule.allows is decision.allowed
        assert decision.rule not in decision.overruled


@given(files, dialects, agents, paths)
def test_a_group_for_somebody_else_changes_nothing(body: str, dialect: Dialect, agent: str, path: str):
    before = parse(body, dialect).decide(agent, path)

    after = parse(f"User-agent: nobody\nAllow: /a\nDisallow: /\n{body}", dialect)

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
    assert {rule.line for group in groups for rule in group.rules} == {
        n for n in read if named and n > min(named)
    }


Unit = tuple[str, int]


def units(text: str) -> list[Unit]:
    """A path as RFC 9309 compares it: octets meant as themselves, and escapes that must stay escapes."""
    found: list[Unit] = []
    octets = text.encode("utf-8", "surrogatepass")
    while octets:
        escape = re.match(rb"%([0-9A-Fa-f]{2})", octets)
        octet = int(escape[1], 16) if escape else octets[0]
        stays = escape and chr(octet) in ":/?#[]@!&()+,;=%"
        found.append(("escape" if stays else "special" if escape and chr(octet) in "*$" else "octet", octet))
        octets = octets[3 if escape else 1 :]
    return found


def reference(rules: list[tuple[bool, str]], path: str) -> bool:
    """The longest of the rules whose regular expression matches, the slow way; allow wins a tie."""
    asked = "".join(chr(octet + 256 * (kind == "escape")) for kind, octet in units(path))
    matching = [
        (length(rule), allows)
        for allows, rule in rules
        if rule and re.match(expression(rule), asked, re.DOTALL)
    ]
    return max(matching, default=(0, True))[1]


def expression(rule: str) -> str:
    parts = units(rule)
    end = parts.pop() == ("octet", ord("$")) if parts[-1] == ("octet", ord("$")) else False
    regex = [
        ".*" if unit == ("octet", ord("*")) else re.escape(chr(unit[1] + 256 * (unit[0] == "escape")))
        for unit in parts
    ]
    return "".join(regex) + (r"\Z" if end else "")


def length(rule: str) -> int:
    plain = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]")
    return sum(1 if kind == "octet" and plain.fullmatch(chr(octet)) else 3 for kind, octet in units(rule))


spelt = st.lists(
    st.sampled_from(
        [
            "/",
            "a",
            "b",
            "*",
            "$",
            "%2A",
            "%24",
            "%61",
            "%2f",
            "%2F",
            "%c3%BC",
            "ü",
            " ",
            "%20",
            "'",
            "%27",
            "%",
            "?",
        ]
    ),
    max_size=8,
).map("".join)


@settings(max_examples=500)
@given(st.lists(st.tuples(st.booleans(), spelt), max_size=6), spelt.map("/{}".format))
def test_a_slow_and_obvious_matcher_gives_the_same_answer(rules: list[tuple[bool, str]], path: str):
    rules = [(allows, rule.strip(" ")) for allows, rule in rules]
    body = "\n".join(
        ["user-agent: *", *(f"{'allow' if allows else 'disallow'}: {rule}" for allows, rule in rules)]
    )

    robots = parse(body, RFC9309)

    assert robots.decide("ExampleBot", path).allowed is reference(rules, path)
