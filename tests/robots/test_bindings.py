"""Bindings: agents bound one after another decide as each does alone, and those of one group share their rules."""

import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.parse import parse

FILE = """\
User-agent: a
User-agent: b
Disallow: /ab

User-agent: c
Disallow: /c
User-agent: *
Disallow: /all
User-agent: A
Allow: /ab/
"""


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE, GOOGLE_2010, CLASSIC], ids=lambda dialect: dialect.name)
def test_each_agent_has_the_rules_that_bind_it_alone(dialect: Dialect):
    robots = parse(FILE, dialect)
    bindings = robots.bindings()

    for name in ["a", "b", "c", "x", "a", "y", "x-y", "c"]:
        agent = UserAgent(name)
        assert bindings.rules_for(agent).rules == parse(FILE, dialect).rules_for(agent).rules


def test_agents_of_one_group_share_its_rules():
    bindings = parse("User-agent: a\nUser-agent: b\nDisallow: /\nUser-agent: c\nDisallow: /\n").bindings()

    a, b, c = (bindings.rules_for(UserAgent(name)) for name in "abc")

    assert a is b
    assert a is not c


def test_the_names_are_the_values_of_all_user_agent_lines():
    assert list(parse("User-agent: a/2\nUser-agent: \xfc\nAllow:\nuser-agent:*\n").bindings().names()) == [
        "a/2",
        "ü",
        "*",
    ]


@pytest.mark.parametrize(
    ("one", "other", "repeats"),
    [
        ("Disallow: /a\nAllow: /b\n", "\n#\nDisallow:/a\nAllow: /b\n", True),
        ("Disallow: /a\n", "Allow: /a\n", False),
        ("Disallow: /a\n", "Disallow: /a\nDisallow: /a\n", False),
        ("Disallow: /a\nDisallow: /b\n", "Disallow: /b\nDisallow: /a\n", False),
    ],
)
def test_rules_repeat_others_on_whatever_lines_they_stand(one: str, other: str, *, repeats: bool):
    first, second = (parse(f"User-agent: *\n{body}").rules_for("x") for body in (one, other))

    assert first.repeats(second) is repeats
