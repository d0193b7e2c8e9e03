"""Groups: where they begin, whom they bind, and what it costs to read them."""

import pytest

from polite.robots.agent import UserAgent
from polite.robots.decision import Rule
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.groups import Group
from polite.robots.parse import parse
from tests.support import calls_of


def test_a_group_names_crawlers_and_its_rules_read_as_people_write_them():
    news = Group(("ExampleBot-News/2",), (1,), ())
    both = Group(("examplebot", "*"), (3, 4), ((False, "/2", 5), (True, "/\xc3\xbc", 6)))

    assert (news.names("examplebot-news"), news.names("examplebot"), news.names_all()) == (True, False, False)
    assert both.names_all()
    assert both.rules == (Rule(False, "/2", 5), Rule(True, "/ü", 6))


def test_what_stands_below_keeps_its_line():
    robots = parse(
        "\nuser-agent: a\n# x\nallow: /b # c\ncrawl-delay: 5\n\nuser-agent: a\ndisallow /d", GOOGLE
    )

    assert [(rule.pattern, rule.line) for rule in robots.rules_for("a").rules] == [("/b", 4), ("/d", 8)]
    assert robots.rules_for("a").crawl_delay == 5.0
    assert [group.lines for group in robots.groups] == [(2,), (7,)]

    # A group is read in pieces.
    long = parse("User-agent: *\n" + "".join(f"Disallow: /{n}\n\n" for n in range(20_000))).rules_for("x")
    assert [(rule.line, rule.pattern) for rule in long.rules] == [(2 * n + 2, f"/{n}") for n in range(20_000)]


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        ("\n", 1),
        ("x{}:\n", 8),
        ("Disallow:/{}\n", 8),
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


BOUND = """\
User-agent: a
User-agent: b
Disallow: /ab

User-agent: c
Disallow: /c
User-agent: *
Disallow: /all
User-agent: A/2
Allow: /ab/
"""


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE_2010, CLASSIC], ids=lambda dialect: dialect.name)
def test_each_agent_has_the_rules_that_bind_it_alone(dialect: Dialect):
    bindings = parse(BOUND, dialect).bindings()

    assert list(bindings.names()) == ["a", "b", "c", "*", "A/2"]
    for name in ["a", "b", "c", "x", "a", "y", "x-y", "c"]:
        agent = UserAgent(name)
        assert bindings.rules_for(agent).rules == parse(BOUND, dialect).rules_for(agent).rules


@pytest.mark.parametrize(
    ("one", "other", "repeats"),
    [
        ("Disallow: /a\nAllow: /b\n", "\n#\nDisallow:/a\nAllow: /b\n", True),
        ("Disallow: /a\n", "Allow: /a\n", False),
        ("Disallow: /a\nDisallow: /b\n", "Disallow: /b\nDisallow: /a\n", False),
    ],
)
def test_rules_repeat_others_on_whatever_lines_they_stand(one: str, other: str, *, repeats: bool):
    first, second = (parse(f"User-agent: *\n{body}").rules_for("x") for body in (one, other))

    assert first.repeats(second) is repeats
