"""Which rule wins: rows P1 to P4 of the digest, with the documents' five situations."""

from itertools import permutations

import pytest

from polite.robots.decision import Decision
from polite.robots.dialect import CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import dialects, newer_dialects


def decide(rules: list[str], path: str, dialect: Dialect) -> Decision:
    return parse("\n".join(["user-agent: *", *rules]), dialect).decide("ExampleBot", path)


@newer_dialects
@pytest.mark.parametrize("order", list(permutations(["disallow: /", "allow: /a", "disallow: /a/b"])))
def test_p1_the_longest_path_wins_whatever_the_order(dialect: Dialect, order: tuple[str, ...]):
    rules = list(order)

    assert not decide(rules, "/b", dialect)
    assert decide(rules, "/a/c", dialect)
    assert not decide(rules, "/a/b", dialect)


@newer_dialects
def test_p1_length_is_counted_in_octets_of_the_encoded_path(dialect: Dialect):
    rules = ["disallow: /ü", "allow: /*x-"]

    decision = decide(rules, "/üx-", dialect)

    assert not decision
    assert [rule.pattern for rule in decision.overruled] == ["/*x-"]


def test_p1_in_rfc9309_an_escape_of_a_plain_letter_counts_as_the_letter():
    rules = ["disallow: /%62%61%72", "allow: /*bar"]

    assert decide(rules, "/bar", RFC9309)


@newer_dialects
@pytest.mark.parametrize("rules", [["disallow: /a", "allow: /a"], ["allow: /a", "disallow: /a"]])
def test_p2_at_equal_length_the_least_restrictive_rule_wins(dialect: Dialect, rules: list[str]):
    decision = decide(rules, "/a", dialect)

    assert decision.allowed
    assert not decision.undefined
    assert [rule.allows for rule in decision.overruled] == [False]


@newer_dialects
def test_p2_at_equal_length_allow_wins_against_a_wildcard_too(dialect: Dialect):
    decision = decide(["disallow: /*b", "allow: /ab"], "/ab", dialect)

    assert decision.allowed
    assert decision.undefined is (dialect is GOOGLE_2010)


SITUATIONS = [
    ("/page", "/p", "/", True),
    ("/folder/page", "/folder/", "/folder", True),
    ("/folder/page", "/folder", "/folder", True),
    ("/page.htm", "/page", "/*.htm", False),
    ("/", "/$", "/", True),
    ("/page.htm", "/$", "/", False),
]


@newer_dialects
@pytest.mark.parametrize(("path", "allow", "disallow", "verdict"), SITUATIONS)
def test_p3_the_documents_situations(dialect: Dialect, path: str, allow: str, disallow: str, verdict: bool):
    decision = decide([f"allow: {allow}", f"disallow: {disallow}"], f"http://example.com{path}", dialect)

    called_undefined = disallow == "/*.htm" and dialect in (GOOGLE_2010, GOOGLE_2019)

    assert decision.allowed is verdict
    assert decision.undefined is called_undefined


@dialects(GOOGLE_2010, GOOGLE_2019)
def test_p3_the_undefined_situation_is_named_with_both_rules(dialect: Dialect):
    decision = decide(["allow: /page", "disallow: /*.htm"], "/page.htm", dialect)

    assert (
        str(decision)
        == "disallowed by Disallow: /*.htm (line 3), whose conflict with Allow: /page (line 2) is undefined"
    )


@pytest.mark.parametrize(
    ("rules", "undefined"),
    [
        (["disallow: /*.htm"], False),
        (["disallow: /page", "disallow: /*.htm"], False),
        (["allow: /*e.htm", "disallow: /*.htm"], True),
        (["allow: /page", "disallow: /page.", "disallow: /p*e.htm"], False),
        (["allow: /page.htm", "disallow: /*.htm"], True),
        (["allow: /page*", "disallow: /"], False),
        (["allow: /page", "disallow: /*.doc"], False),
    ],
)
def test_p3_a_decision_by_the_position_of_a_wildcard_rule_alone_is_undefined(rules, undefined):
    assert decide(rules, "/page.htm", GOOGLE_2010).undefined is undefined


@pytest.mark.parametrize("line", ["allow: /", "allow: /a", "Allow: /a/b"])
def test_p4_classic_has_no_allow(line: str):
    decision = decide([line, "disallow: /a"], "/a/b", CLASSIC)

    assert not decision
    assert decision.overruled == ()


def test_p4_in_classic_any_disallow_that_matches_forbids_and_an_allow_ends_no_agents():
    robots = parse("user-agent: a\nallow: /\nuser-agent: b\ndisallow: /a\ndisallow: /a/b", CLASSIC)

    assert not robots.decide("a", "/a/c")
    assert robots.decide("a", "/b")
