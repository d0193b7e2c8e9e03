"""Sections: where user-agent lines stand, and which of them belong together."""

from dataclasses import replace

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, RFC9309, Dialect
from polite.robots.groups import Sections
from polite.robots.parse import parse
from tests.support import calls_of


def grouped(text: str, dialect: Dialect = RFC9309) -> list[list[str]]:
    sections = Sections(text, dialect)
    return [
        [sections.agents[place][2] for place in group]
        for group in sections.groups(range(len(sections.agents)))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "User-Agent:a",
        "\tuser-agent : a # x",
        "\n\nUSER-AGENT: a",
        "x: user-agent\nuser-agent:a",
        "user-agent:a\n",
        "user-agents: a",
    ],
)
def test_a_user_agent_line_is_found_wherever_it_stands(text: str):
    assert grouped(text) == [["a"]]


@pytest.mark.parametrize(
    "text", ["", "#user-agent: a", "xuser-agent: a", "user-agent a b", "\xb5user-agent: a"]
)
def test_what_is_no_user_agent_line_is_not_taken_for_one(text: str):
    assert grouped(text) == []


def test_a_rule_parts_groups_and_nothing_else_does():
    text = "user-agent: a\n\n# x\ncrawl-delay: 1\nuser-agent: b\nallow:\nuser-agent: c"

    assert grouped(text) == [["a", "b"], ["c"]]
    assert grouped(text, replace(RFC9309, any_field_ends_agents=True)) == [["a"], ["b"], ["c"]]


def test_a_blank_line_parts_groups_where_it_means_something():
    text = "user-agent: a\n\n# x\nuser-agent: b\n# y\nuser-agent: c"

    assert grouped(text, CLASSIC) == [["a"], ["b", "c"]]
    assert grouped(text) == [["a", "b", "c"]]


def test_the_group_of_a_line_reaches_both_ways():
    sections = Sections("user-agent: a\nuser-agent: b\nuser-agent: c\nallow: /\nuser-agent: d", RFC9309)

    assert list(sections.groups([1, 2])) == [range(3)]
    assert list(sections.groups([2, 3])) == [range(3), range(3, 4)]


def test_what_stands_below_keeps_its_line():
    sections = Sections(
        "\nuser-agent: a\n# x\nallow: /b # c\ncrawl-delay: 5\n\nuser-agent: b\ndisallow /d", GOOGLE
    )

    below = sections.below(sections.groups([0, 1]))

    assert below.paths == ["/b", "/d"]
    assert [mark >> 1 for mark in below.marks] == [4, 8]
    assert [value for _, value in below.paces] == ["5"]
    assert sections.numbers() == [2, 7]


def test_a_dialect_may_call_a_user_agent_line_something_else():
    own = replace(RFC9309, name="own", misspellings=(("robot", "user-agent"),))

    assert grouped("robot: a\nallow: /\nuser-agent: b", own) == [["a"], ["b"]]


def test_the_rules_of_a_long_group_keep_their_line_numbers():
    rules = (
        parse("User-agent: *\n" + "".join(f"Disallow: /{n}\n\n" for n in range(20_000))).rules_for("x").rules
    )

    assert len(rules) == 20_000
    assert all(rule.line == 2 * n + 2 and rule.pattern == f"/{n}" for n, rule in enumerate(rules))


def test_groups_that_follow_each_other_are_read_at_once_and_say_the_same():
    group = "User-agent: a\nDisallow: /{}\nCrawl-delay: {}\nUser-agent b\nUser-agent: a\nAllow: /{}\n"
    text = "User-agent: c\nDisallow: /c\n".join(group.replace("{}", str(each)) * 2 for each in range(3))
    sections = Sections(text, RFC9309)
    of_a = [each for each, (_, _, value) in enumerate(sections.agents) if value == "a"]

    below = sections.below(sections.groups(of_a))
    each = list(sections.each_below(sections.groups(of_a)))

    assert below.paths == [path for one in each for path in one.paths]
    assert below.paths == ["/0"] * 4 + ["/1"] * 4 + ["/2"] * 4
    assert list(below.marks) == [mark for one in each for mark in one.marks]
    assert below.paces == [pace for one in each for pace in one.paces]


def test_no_group_is_read_for_an_agent_without_one():
    assert Sections("User-agent: a\nDisallow: /", RFC9309).below([]).paths == []


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        ("\n", 1),
        ("#\n", 1),
        ("x{}:\n", 8),
        ("Disallow:/{}\n", 8),
        ("Visit-time:0600-0845\n", 10),
        ("User-agent:*\n", 16),
        ("User-agent:*\n\n", 20),
        ("User-agent:*\nDisallow:/{}\n", 28),
    ],
)
def test_a_hostile_file_takes_a_few_calls_for_each_line(lines: str, most: int):
    def calls(times: int) -> int:
        robots = parse("User-agent: *\n" + "".join(map(lines.format, range(times))))
        return calls_of(lambda: robots.rules_for("examplebot"))

    calls(1)  # what is made once
    assert calls(2_000) - calls(1_000) <= most * 1_000


def test_the_index_of_a_large_file_is_built_once():
    robots = parse("User-agent: *\n" + "".join(f"Disallow:/{each}\n" for each in range(3_000)))
    rules = robots.rules_for("examplebot")

    assert calls_of(rules.prepare) <= 2
