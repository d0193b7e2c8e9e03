"""How lines form groups, and which group a crawler obeys: rows G1 to G6 and A1 to A5, with the documents' own examples."""

from dataclasses import replace
from itertools import permutations

import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason
from tests.standards.dialects import (
    combining_dialects,
    dialects,
    every_dialect,
    lettered_dialects,
    newer_dialects,
)

FOUR_GROUPS = """\
user-agent: a
disallow: /c

user-agent: b
disallow: /d

user-agent: e
user-agent: f
disallow: /g

user-agent: h
"""


def refused(body: str, agent: str, dialect: Dialect, *paths: str) -> list[str]:
    robots = parse(body, dialect)
    return [path for path in paths if not robots.decide(agent, path)]


@every_dialect
@pytest.mark.parametrize(
    ("agent", "forbidden"), [("a", ["/c"]), ("b", ["/d"]), ("e", ["/g"]), ("f", ["/g"]), ("h", [])]
)
def test_g1_the_documents_example_has_a_group_for_each(dialect: Dialect, agent: str, forbidden: list[str]):
    assert refused(FOUR_GROUPS, agent, dialect, "/c", "/d", "/g") == forbidden


@every_dialect
def test_g1_a_field_that_is_no_rule_leaves_the_agents_together(dialect: Dialect):
    robots = parse("User-agent: a\nCrawl-delay: 5\nNoindex: /x\nUser-agent: b\nDisallow: /", dialect)

    assert not robots.decide("a", "/")
    assert robots.rules_for("b").crawl_delay == 5.0


@pytest.mark.parametrize("line", ["Crawl-delay: 5", "Noindex: /x"])
def test_g1_a_dialect_may_let_any_field_part_the_agents(line: str):
    strict = replace(RFC9309, any_field_ends_agents=True)
    body = f"User-agent: a\n{line}\nUser-agent: b\nDisallow: /"

    assert refused(body, "a", strict, "/") == []
    assert refused(body, "b", strict, "/") == ["/"]


@every_dialect
def test_g2_a_group_ends_at_the_user_agent_line_after_a_rule(dialect: Dialect):
    body = "User-agent: a\nDisallow: /a\nUser-agent: b\nDisallow: /b"

    assert refused(body, "a", dialect, "/a", "/b") == ["/a"]
    assert refused(body, "b", dialect, "/a", "/b") == ["/b"]


BLANK_BETWEEN_AGENTS = [
    "User-agent: a\n\n",
    "User-agent: a\n \t\n",
    "User-agent: a\n\n# comment\n",
    "User-agent: a\n#\n\n",
]


@newer_dialects
@pytest.mark.parametrize("start", BLANK_BETWEEN_AGENTS)
def test_g2_blank_lines_do_not_part_user_agents_but_in_classic(dialect: Dialect, start: str):
    body = f"{start}User-agent: b\nDisallow: /"

    assert refused(body, "a", dialect, "/") == ["/"]
    assert refused(body, "a", CLASSIC, "/") == []
    assert refused(body, "b", CLASSIC, "/") == ["/"]
    # A comment alone parts nothing.
    assert refused(body.replace("\n\n", "\n").replace(" \t\n", ""), "a", CLASSIC, "/") == ["/"]


@every_dialect
def test_g3_a_rule_above_any_user_agent_line_is_ignored(dialect: Dialect):
    body = "Disallow: /\nCrawl-delay: 9\nUser-agent: *\nDisallow: /b"

    assert refused(body, "a", dialect, "/a", "/b") == ["/b"]
    assert parse(body, dialect).rules_for("a").crawl_delay is None


@every_dialect
def test_g4_a_last_group_without_rules_allows_everything(dialect: Dialect):
    decision = parse("user-agent: *\ndisallow: /\nuser-agent: h", dialect).decide("h", "/c")

    assert (decision.allowed, decision.reason) == (True, Reason.NO_RULE)


FINNISH_EXAMPLE_2 = """\
user-agent: googlebot-news
disallow: /fish

user-agent: *
disallow: /carrots

user-agent: googlebot-news
disallow: /shrimp
"""
FOOD = ("/fish", "/carrots", "/shrimp")


@combining_dialects
def test_g5_groups_of_one_agent_are_combined(dialect: Dialect):
    assert refused(FINNISH_EXAMPLE_2, "googlebot-news", dialect, *FOOD) == ["/fish", "/shrimp"]
    assert refused(FINNISH_EXAMPLE_2, "otherbot", dialect, *FOOD) == ["/carrots"]


@combining_dialects
def test_g5_groups_for_everyone_are_combined_and_the_slowest_pace_holds(dialect: Dialect):
    group = "User-agent: *\nDisallow: /{}\nCrawl-delay: {}\n"
    rules = parse(group.format("a", 2) + group.format("b", 7), dialect).rules_for("a")

    assert [rule.pattern for rule in rules.rules] == ["/a", "/b"]
    assert rules.crawl_delay == 7.0


def test_g5_in_google_2010_one_group_alone_is_valid_and_it_is_the_first():
    assert refused(FINNISH_EXAMPLE_2, "googlebot-news", GOOGLE_2010, *FOOD) == ["/fish"]


@every_dialect
def test_g6_a_sitemap_ends_no_group_and_belongs_to_none(dialect: Dialect):
    strict = replace(dialect, any_field_ends_agents=True)
    sitemap = "Sitemap: https://example.com"
    body = f"User-agent: a\n{sitemap}/s.xml\nUser-agent: b\nDisallow: /c\n{sitemap}/t.xml\nDisallow: /d"

    assert refused(body, "a", strict, "/c", "/d") == refused(body, "b", strict, "/c", "/d") == ["/c", "/d"]
    assert parse(body, strict).sitemaps == ("https://example.com/s.xml", "https://example.com/t.xml")


# A: which group a crawler obeys.

THREE_GROUPS = [
    "user-agent: googlebot-news\ndisallow: /1\n",
    "user-agent: *\ndisallow: /2\n",
    "user-agent: googlebot\ndisallow: /3\n",
]
TABLE = [
    ("Googlebot-News/2.1", "googlebot-news", "/1"),
    ("Googlebot/2.1", "googlebot", "/3"),
    ("Googlebot-Images/1.0", "googlebot", "/3"),
    ("Otherbot/1.0", "*", "/2"),
    ("Otherbot-News/1.0", "*", "/2"),
]


def decided(value: str, agent: str | UserAgent, dialect: Dialect) -> bool:
    """Whether an agent may fetch "/", where a group with this name forbids it."""
    return parse(f"user-agent: {value}\ndisallow: /", dialect).decide(agent, "/").allowed


@every_dialect
@pytest.mark.parametrize("order", list(permutations(THREE_GROUPS)))
def test_a1_the_most_specific_group_holds_alone_whatever_the_order(dialect: Dialect, order: tuple[str, ...]):
    rules = parse("\n".join(order), dialect).rules_for("Googlebot-News")

    assert rules.group == "googlebot-news"
    assert [rule.pattern for rule in rules.rules] == ["/1"]


@every_dialect
@pytest.mark.parametrize(
    ("value", "named"),
    [
        *(
            (value, True)
            for value in ("GoogleBot", "googlebot/1.2", "googlebot*", "googlebot 2.1", "GOOGLEBOT(x)")
        ),
        *(
            (value, False)
            for value in ("googlebots", "googlebot-news", "google", "my-googlebot", "googlebot_x", "")
        ),
        # A star alone names everyone.
        *((value, True) for value in ("*", "* ", "* everyone", "*#all")),
        *((value, False) for value in ("*bot", "**")),
    ],
)
def test_a2_case_and_text_behind_the_name_are_ignored(dialect: Dialect, value: str, named: bool):
    assert decided(value, "Googlebot", dialect) is not named


@dialects(CLASSIC, GOOGLE_2010, GOOGLE_2019)
@pytest.mark.parametrize(("header", "group", "forbidden"), TABLE)
def test_a3_the_documents_table_by_derived_names(dialect: Dialect, header: str, group: str, forbidden: str):
    rules = parse("\n".join(THREE_GROUPS), dialect).rules_for(header)

    assert rules.group == group
    assert [path for path in ("/1", "/2", "/3") if not rules.allows(path)] == [forbidden]


@every_dialect
@pytest.mark.parametrize(("header", "group", "forbidden"), TABLE)
def test_a3_the_documents_table_by_an_explicit_chain(dialect, header: str, group: str, forbidden: str):
    name = header.partition("/")[0]

    rules = parse("\n".join(THREE_GROUPS), dialect).rules_for(
        UserAgent(header, (name, name.partition("-")[0]))
    )

    assert rules.group == group
    assert not rules.allows(forbidden)


@dialects(RFC9309, GOOGLE)
def test_a3_the_default_and_googles_matcher_derive_no_general_names(dialect: Dialect):
    assert parse("\n".join(THREE_GROUPS), dialect).rules_for("Googlebot-Images/1.0").group == "*"


@every_dialect
def test_a4_without_a_group_and_without_a_star_there_is_no_restriction(dialect: Dialect):
    decision = parse("user-agent: otherbot\ndisallow: /", dialect).decide("Googlebot", "/")

    assert (decision.allowed, decision.reason) == (True, Reason.NO_GROUP)


@every_dialect
def test_a5_a_name_of_letters_hyphens_and_underscores_ends_before_anything_else(dialect: Dialect):
    assert not decided("Example_Bot-x2", UserAgent("X", tokens=("example_bot-x",)), dialect)


@lettered_dialects
@pytest.mark.parametrize("value", ["MJ12bot", "mj12bot/v1.4", "MJ12BOT *"])
def test_a5_a_configured_name_may_hold_digits(dialect: Dialect, value: str):
    assert not decided(value, "MJ12bot/v1.4 (http://mj12bot.com/)", dialect)


def test_a5_google_can_never_find_a_name_with_digits():
    assert decided("MJ12bot", "MJ12bot/v1.4", GOOGLE)
    assert not decided("MJ12bot", "MJ", GOOGLE)
