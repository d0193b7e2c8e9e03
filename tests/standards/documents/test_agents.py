"""Which group a crawler obeys: rows A1 to A5 of the digest, with the documents' table."""

from itertools import permutations

import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason
from tests.standards.dialects import dialects, every_dialect, lettered_dialects

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
