"""Which group a crawler obeys: rows A1 to A5 of the digest, with the documents' table."""

from itertools import permutations

import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason

ALL = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
every_dialect = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
deriving_dialects = pytest.mark.parametrize("dialect", ALL[:3], ids=lambda dialect: dialect.name)
lettered_dialects = pytest.mark.parametrize("dialect", ALL[:-1], ids=lambda dialect: dialect.name)

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


@every_dialect
@pytest.mark.parametrize("order", list(permutations(THREE_GROUPS)))
def test_a1_the_most_specific_group_holds_alone_whatever_the_order(dialect: Dialect, order: tuple[str, ...]):
    rules = parse("\n".join(order), dialect).rules_for("Googlebot-News")

    assert rules.group == "googlebot-news"
    assert [rule.pattern for rule in rules.rules] == ["/1"]


@every_dialect
@pytest.mark.parametrize(
    "value",
    ["GoogleBot", "googlebot/1.2", "googlebot*", "googlebot 2.1", "GOOGLEBOT(x)"],
)
def test_a2_case_and_text_that_is_not_the_name_are_ignored(dialect: Dialect, value: str):
    robots = parse(f"user-agent: {value}\ndisallow: /", dialect)

    assert not robots.decide("Googlebot", "/")


@every_dialect
@pytest.mark.parametrize(
    "value", ["googlebots", "googlebot-news", "google", "my-googlebot", "googlebot_x", "xgooglebot", ""]
)
def test_a2_another_name_is_another_crawler(dialect: Dialect, value: str):
    robots = parse(f"user-agent: {value}\ndisallow: /", dialect)

    assert robots.decide("Googlebot", "/")


@every_dialect
@pytest.mark.parametrize(
    ("value", "everyone"),
    [("*", True), ("* ", True), ("* everyone", True), ("*#all", True), ("*bot", False), ("**", False)],
)
def test_a2_a_star_alone_names_everyone(dialect: Dialect, value: str, everyone: bool):
    robots = parse(f"user-agent: {value}\ndisallow: /", dialect)

    assert robots.decide("Googlebot", "/").allowed is not everyone


@deriving_dialects
@pytest.mark.parametrize(("header", "group", "forbidden"), TABLE)
def test_a3_the_documents_table_by_derived_names(dialect: Dialect, header: str, group: str, forbidden: str):
    rules = parse("\n".join(THREE_GROUPS), dialect).rules_for(header)

    assert rules.group == group
    assert [path for path in ("/1", "/2", "/3") if not rules.allows(path)] == [forbidden]


@every_dialect
@pytest.mark.parametrize(("header", "group", "forbidden"), TABLE)
def test_a3_the_documents_table_by_an_explicit_chain(
    dialect: Dialect, header: str, group: str, forbidden: str
):
    name = header.partition("/")[0]
    agent = UserAgent(header, tokens=(name, name.partition("-")[0]))

    rules = parse("\n".join(THREE_GROUPS), dialect).rules_for(agent)

    assert rules.group == group
    assert not rules.allows(forbidden)


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
def test_a3_the_default_and_googles_matcher_derive_no_general_names(dialect: Dialect):
    rules = parse("\n".join(THREE_GROUPS), dialect).rules_for("Googlebot-Images/1.0")

    assert rules.group == "*"


def test_a3_a_derived_name_never_allows_what_the_star_forbids_by_default():
    robots = parse("user-agent: *\ndisallow: /\nuser-agent: a\nallow: /")

    assert not robots.decide("a-b", "/")
    assert not robots.rules_for("a-b").allows("/")
    assert robots.decide(UserAgent("a-b", tokens=("a-b", "a")), "/")


@every_dialect
def test_a4_without_a_group_and_without_a_star_there_is_no_restriction(dialect: Dialect):
    decision = parse("user-agent: otherbot\ndisallow: /", dialect).decide("Googlebot", "/")

    assert decision.allowed
    assert decision.reason is Reason.NO_GROUP


@every_dialect
def test_a5_a_name_of_letters_hyphens_and_underscores_ends_before_anything_else(dialect: Dialect):
    robots = parse("user-agent: Example_Bot-x2\ndisallow: /", dialect)

    assert not robots.decide(UserAgent("X", tokens=("example_bot-x",)), "/")


@lettered_dialects
@pytest.mark.parametrize("value", ["MJ12bot", "mj12bot/v1.4", "MJ12BOT *"])
def test_a5_a_configured_name_may_hold_digits(dialect: Dialect, value: str):
    robots = parse(f"user-agent: {value}\ndisallow: /", dialect)

    assert not robots.decide("MJ12bot/v1.4 (http://mj12bot.com/)", "/")


def test_a5_google_can_never_find_a_name_with_digits():
    robots = parse("user-agent: MJ12bot\ndisallow: /", GOOGLE)

    assert robots.decide("MJ12bot/v1.4", "/")
    assert not robots.decide("MJ", "/")
