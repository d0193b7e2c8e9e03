"""RuleSet and Decision: what they say, and what a crawler without a file is told."""

import gc
import inspect
from dataclasses import FrozenInstanceError, fields
from weakref import ref

import pytest

import polite
from polite.errors import InvalidURL
from polite.robots.decision import Rule
from polite.robots.dialect import GOOGLE
from polite.robots.parse import parse
from polite.robots.reason import Reason
from polite.robots.result import Unavailable, Unreachable
from polite.robots.rules import RuleSet

RULES = parse("User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*c\nDisallow:\n").rules_for("ExampleBot")
URL = "https://example.com/robots.txt"


def test_a_decision_knows_its_rule_and_the_other_rules_that_match_best_first():
    decision = RULES.decide("/a/bc")

    assert (decision.rule, decision.reason, decision.path) == (Rule(True, "/a/b", 3), Reason.RULE, "/a/bc")
    assert bool(decision) is decision.allowed is True
    assert decision.overruled == (Rule(False, "/*c", 4), Rule(False, "/a", 2))
    assert RULES.decide("/c").overruled == ()


def test_robots_txt_overrules_every_rule_that_matches_it():
    decision = parse("User-agent: *\nDisallow: /\nDisallow: /r").decide("ExampleBot", "/robots.txt")

    assert [rule.pattern for rule in decision.overruled] == ["/r", "/"]
    assert not decision.undefined


@pytest.mark.parametrize("path", ["", "a", "https://example.com/"])
@pytest.mark.parametrize("ask", [RULES.allows, RULES.decide])
def test_a_path_that_starts_with_no_slash_is_refused(ask, path: str):
    with pytest.raises(InvalidURL, match='starts with "/"'):
        ask(path)


def test_a_rules_text_is_fit_to_print_whatever_the_file_holds():
    text = str(parse(b"User-agent: *\nDisallow: /\x1b[31m\xff" + b"a" * 1_000).groups[0].rules[0])

    assert text.isprintable()
    assert len(text) < 300


def test_decisions_are_frozen_values_that_compare_by_what_they_say():
    again = parse("User-agent: *\nDisallow: /a\nAllow: /a/b\n").rules_for("OtherBot")
    other = parse("User-agent: *\n\nDisallow: /a\n").rules_for("ExampleBot")

    assert RULES.decide("/a") == again.decide("/a")
    assert RULES.decide("/a") not in (again.decide("/a/b"), other.decide("/a"), ("/a", False))
    assert len({RULES.decide("/a"), again.decide("/a"), again.decide("/a/b")}) == 2
    with pytest.raises(FrozenInstanceError):
        RULES.decide("/a").allowed = True


def test_without_a_file_all_is_allowed_and_the_decision_says_why():
    access = Unavailable(Reason.CLIENT_ERROR, URL, 404)

    decision = RuleSet.allow_all(Reason.UNAVAILABLE, access=access).decide("/a")

    assert (decision.allowed, decision.reason, decision.cause, decision.access) == (
        True,
        Reason.UNAVAILABLE,
        Reason.CLIENT_ERROR,
        access,
    )
    assert str(decision) == f"allowed: {Reason.CLIENT_ERROR.value}; {Reason.UNAVAILABLE.value}"


def test_without_an_answer_all_is_denied_but_robots_txt():
    rules = RuleSet.deny_all(Reason.UNREACHABLE, access=Unreachable(Reason.TIMEOUT, URL))

    assert not rules.allows("/")
    assert rules.decide("/").cause is Reason.TIMEOUT
    assert rules.allows("/robots.txt")
    assert not RuleSet.deny_all(Reason.UNREACHABLE, dialect=GOOGLE).allows("/robots.txt")


@pytest.mark.parametrize(
    "lines",
    ["", "Disallow: /a", "Disallow: /*.pdf$\nDisallow: /b", "Allow: /b", "Disallow: /a\nAllow: /a/b"],
)
def test_the_first_decision_is_that_of_rules_made_ready(lines):
    body = f"User-agent: *\n{lines}"
    ready = parse(body).rules_for("x").prepare()

    assert ready
    for path in ("/", "/a", "/a/b", "/b", "/7", "/x.pdf", "/x.pdf?", "/robots.txt"):
        assert parse(body).rules_for("x").decide(path)[:-1] == ready.decide(path)[:-1]
        assert parse(body).rules_for("x").allows(path) is ready.allows(path) is ready.decide(path).allowed


def test_the_lifetime_of_rules_ends_with_them():
    rules = RuleSet.allow_all(Reason.NO_RULE)
    alive = ref(rules.lifetime)

    assert alive() is rules.lifetime

    del rules
    gc.collect()

    assert alive() is None


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_the_option_of_a_reason_is_an_option_there_is(reason: Reason) -> None:
    policy, _, field = reason.option.partition(".")

    if policy in ("RobotsPolicy", "FetchPolicy"):
        assert field in {each.name for each in fields(getattr(polite, policy))}
    else:
        option = reason.option.removeprefix("open_gate(").removesuffix("=...)")
        assert option in inspect.signature(polite.open_gate).parameters


def test_what_only_an_option_changes_cannot_pass_by_waiting() -> None:
    assert {reason for reason in Reason if not reason.may_pass} == {
        Reason.ADDRESS_REFUSED,
        Reason.PROXY_REFUSED,
        Reason.REDIRECT_DOWNGRADE,
        Reason.REDIRECT_SCHEME,
        Reason.REDIRECT_UNSAFE,
        Reason.SCHEME_UNKNOWN,
    }
