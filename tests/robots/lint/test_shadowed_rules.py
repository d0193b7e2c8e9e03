"""shadowed_rules: which pairs it gives, and where it does not look. What is idle at all is in test_lint."""

from dataclasses import replace

from polite.robots.dialect import GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.lint.checks import shadowed_rules
from polite.robots.parse import parse


def found(body: str, dialect: Dialect = RFC9309) -> list[tuple[int, int]]:
    return [(idle.line, winner.line) for idle, winner in shadowed_rules(parse(body, dialect).groups, dialect)]


def test_groups_are_looked_at_one_by_one():
    assert found("User-agent: a\nDisallow: /x\n\nUser-agent: b\nDisallow: /x\nDisallow: /x\n") == [(6, 5)]


def test_an_index_page_that_stands_for_its_folder_too_is_not_looked_at():
    body = "User-agent: *\nAllow: /a/index.html\nAllow: /*a/index.html\n"

    assert found(body, RFC9309) == [(2, 3)]
    assert found(body, GOOGLE) == []


def test_a_path_without_its_slash_is_idle_only_where_the_dialect_supplies_one():
    body = "User-agent: *\nDisallow: fish\nDisallow: /fish\nDisallow: fish\n"

    assert found(body, GOOGLE_2010) == [(3, 2), (4, 2)]
    assert found(body, RFC9309) == []


def test_a_group_of_very_many_rules_is_passed_over():
    many = "Disallow: /x\n" * 1_001

    assert found(f"User-agent: a\n{many}\nUser-agent: b\nDisallow: /x\nDisallow: /x\n") == [(1_006, 1_005)]


def test_of_very_many_groups_the_first_are_looked_at():
    group = "User-agent: a\n" + "Disallow: /x\n" * 1_000

    assert len(found(group * 6)) == 5 * 999


def test_wildcard_rules_that_would_take_too_long_to_compare_are_passed_over():
    def group(rules: int) -> str:
        rows = (f"Disallow: /*a*{n}*{'x' * 100}\n" for n in range(rules))
        return "User-agent: a\n" + "".join(rows) + "Disallow: /*a*1*" + "x" * 100 + "\n"

    assert len(found(group(300))) == 1
    assert found(group(900)) == []


def test_a_rule_that_also_means_its_dollar_is_not_searched():
    body = "User-agent: *\nDisallow: /x$\nAllow: /*x\n"

    assert found(body) == [(2, 3)]
    assert found(body, replace(RFC9309, name="both", dollar_is_both=True)) == []
