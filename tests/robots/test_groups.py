"""Groups, where they begin and whom they bind; and UserAgent: what can be sent, and which names it gives."""

from dataclasses import FrozenInstanceError

import pytest

from polite.errors import InvalidUserAgent
from polite.robots.agent import UserAgent, names_agent
from polite.robots.dialect import GOOGLE, RFC9309
from polite.robots.parse import parse


def test_what_stands_below_keeps_its_line():
    robots = parse("\nuser-agent: a\n#\nallow: /b # c\ncrawl-delay: 5\n\nuser-agent: a\ndisallow /d", GOOGLE)

    assert [(rule.pattern, rule.line) for rule in robots.rules_for("a").rules] == [("/b", 4), ("/d", 8)]
    assert robots.rules_for("a").crawl_delay == 5.0
    assert [group.lines for group in robots.groups] == [(2,), (7,)]

    # A group is read in pieces.
    long = parse("User-agent: *\n" + "".join(f"Disallow: /{n}\n\n" for n in range(20_000))).rules_for("x")
    assert [(rule.line, rule.pattern) for rule in long.rules] == [(2 * n + 2, f"/{n}") for n in range(20_000)]


@pytest.mark.parametrize(
    "file",
    [
        "User-agent: foobot\nDisallow-note: see wiki\nUser-agent: barbot\nDisallow: /p\n",
        "User-agent: foobot\nAllow: /a\nUser-agent-note: see wiki\nDisallow: /p\n",
        "User-agent: *\nDisallow: /p\n\nUser-agent-contact: foobot@example.com\n",
        "User-agents: foobot\nDisallow; /p\nUser-agent: barbot\nAllow: /\n",
        "User-agent: foobot\nDisallow-all: /p\n",
        "User-agent: *\nDisallow: /p\n\nUser-agent: *\nDisallow cgi-bin\n\nUser-agent: goodbot\nAllow: /p\n",
        "User-agent: foobot\nDisallow-all /x # c\nUser-agent: *\nDisallow: /p\n",
        "User-agent: foobot\nAllow: /a\nUser-agent note: see wiki\nDisallow: /p\n",
    ],
)
def test_a_field_that_only_begins_as_another_can_forbid_but_takes_no_rule_from_a_group(file: str):
    robots = parse(file)

    assert not robots.decide("foobot", "/p")
    assert not parse(robots.to_text()).decide("foobot", "/p")


@pytest.mark.parametrize(
    ("header", "tokens"),
    [
        ("ExampleBot-News/1.0 (+https://example.com/bot)", ("examplebot-news", "examplebot")),
        ("AdsBot-Google-Mobile", ("adsbot-google-mobile", "adsbot-google", "adsbot")),
        ("MJ12bot/v1.4 (http://mj12bot.com/)", ("mj12bot",)),
        ("Mozilla/5.0 (compatible; ExampleBot/1.0; +http://example.com/)", ("examplebot",)),
        ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; Compatible;bingbot/2.0) Chrome/1", ("bingbot",)),
        ("Mozilla/5.0 (compatible; )", ("mozilla",)),
        ("Example_Bot--2-x", ("example_bot--2-x", "example_bot--2", "example_bot")),
        ("7-up", ("7-up",)),
        ("Bot/1 (für alle)", ("bot",)),
    ],
)
def test_names_come_from_the_product(header: str, tokens: tuple[str, ...]):
    assert UserAgent(header).tokens == tokens


def test_explicit_names_are_kept_in_order_lower_case_and_once():
    agent = UserAgent(" (no product) ", tokens=["ExampleBot-News", "other", "OTHER"])

    assert agent.tokens == ("examplebot-news", "other")
    assert agent.names(GOOGLE) == agent.names(RFC9309) == agent.tokens
    assert len(UserAgent("a-" * 1_000 + "a").tokens) == 32
    assert {agent: 1}[UserAgent("(no product)", tokens=["ExampleBot-News", "other"])] == 1
    with pytest.raises(FrozenInstanceError):
        agent.header = "other"


@pytest.mark.parametrize(
    "header", ["", "Bot\r\nX: y", "Bot\x85", "Bot €", "B" * 2_049, None, "*", "/1.0", "1.0", "--"]
)
def test_a_header_that_cannot_be_sent_or_names_no_product_is_refused(header: str):
    with pytest.raises(InvalidUserAgent):
        UserAgent(header)


@pytest.mark.parametrize(
    "tokens", ["examplebot", [""], ["a b"], ["*"], ["a/1"], ["12"], ["ä"], [None], ["a\n"], ["a"] * 33]
)
def test_names_that_no_file_can_hold_are_refused(tokens: list[str]):
    with pytest.raises(InvalidUserAgent, match="tokens "):
        UserAgent("ExampleBot", tokens=tokens)


@pytest.mark.parametrize(
    ("value", "name", "named"),
    [
        ("bot12", "bot1", False),
        ("bot1x", "bot1", False),
        ("bot1/2", "bot1", True),
        ("bot2", "bot", True),
        ("BOT", "bot", True),
    ],
)
def test_a_name_in_a_file_ends_where_another_name_would_go_on(value: str, name: str, named: bool):
    assert names_agent(value, name) is named
