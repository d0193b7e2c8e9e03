"""D7: rules that never decide, which rule wins instead, and where nobody looks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import BY_NAME, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.lint.checks import shadowed_rules
from polite.robots.lint.lint import lint
from polite.robots.parse import parse
from tests.support import examples

BOTH = replace(RFC9309, name="both", dollar_is_both=True)
INDEX = ["Allow: /a/index.html", "Allow: /*a/index.html"]
NO_SLASH = ["Disallow: fish", "Disallow: /fish", "Disallow: fish"]


def found(body: str, dialect: Dialect = RFC9309) -> list[tuple[int, int]]:
    return [(idle.line, winner.line) for idle, winner in shadowed_rules(parse(body, dialect).groups, dialect)]


@pytest.mark.parametrize(
    ("rules", "dialect", "pairs"),
    [
        (["Disallow: /a", "Disallow: /a"], RFC9309, [(3, 2)]),
        (["Allow: /a", "Disallow: /a"], RFC9309, [(3, 2)]),
        (["Disallow: /x/b", "Allow: /*x*/b"], RFC9309, [(2, 3)]),
        (["Disallow: /a", "Disallow: /a*"], RFC9309, [(2, 3)]),
        (["Disallow: /%C3%BC", "Allow: /ü"], RFC9309, [(2, 3)]),
        (["Disallow: /x$", "Allow: /*x"], RFC9309, [(2, 3)]),
        (["Disallow: /x$", "Allow: /*x"], BOTH, []),
        (["Disallow: /x", "Allow: /*x$"], RFC9309, []),
        (["Disallow: /", "Disallow: /a", "Allow: /a/b"], RFC9309, []),
        (["Disallow: /*b", "Disallow: /a*"], RFC9309, []),
        # An index page stands for its folder, too.
        (INDEX, RFC9309, [(2, 3)]),
        (INDEX, GOOGLE, []),
        (NO_SLASH, GOOGLE_2010, [(3, 2), (4, 2)]),
        (NO_SLASH, RFC9309, []),
    ],
)
def test_a_rule_that_never_decides_is_found_with_the_one_that_does(rules, dialect, pairs):
    body = "\n".join(["User-agent: *", *rules, "User-agent: b", "Disallow: /a"])

    assert found(body, dialect) == pairs
    assert [finding.line for finding in lint(body, dialect) if finding.code == "D7"] == [
        idle for idle, _ in pairs
    ]


def test_groups_of_very_many_rules_and_groups_beyond_a_number_are_passed_over():
    many, last = "Disallow: /x\n" * 1_001, "User-agent: b\nDisallow: /x\nDisallow: /x\n"
    group = "User-agent: a\n" + "Disallow: /x\n" * 1_000

    assert found(f"User-agent: a\n{many}\n{last}") == [(1_006, 1_005)]
    assert len(found(group * 6)) == 5 * 999


def test_wildcard_rules_that_would_take_too_long_to_compare_are_passed_over():
    def group(rules: int) -> str:
        rows = (f"Disallow: /*a*{n}*{'x' * 100}\n" for n in range(rules))
        return "User-agent: a\n" + "".join(rows) + "Disallow: /*a*1*" + "x" * 100 + "\n"

    assert len(found(group(300))) == 1
    assert found(group(900)) == []


@examples(300, fast=30)
@given(
    st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), st.text("/ab*$", max_size=6)), max_size=6),
    st.sampled_from([*BY_NAME.values()]),
    st.lists(st.text("/ab$x", max_size=6).map("/{}".format), max_size=20),
)
def test_a_rule_that_is_said_never_to_decide_never_does(rules, dialect, asked):
    body = "\n".join(["User-agent: *", *(f"{field}: {path}" for field, path in rules)])
    idle = {idle for idle, _ in found(body, dialect)}

    bound = parse(body, dialect).rules_for("x")

    assert idle.isdisjoint({decision.rule.line for path in asked if (decision := bound.decide(path)).rule})
