"""RFC 9309, 2.2.1: which groups a crawler's product token finds."""

import pytest

from polite.robots.agent import UserAgent
from polite.robots.parse import parse
from polite.robots.reason import Reason


@pytest.mark.parametrize("value", ["ExampleBot", "examplebot", "EXAMPLEBOT"])
def test_the_product_token_is_matched_without_regard_to_case(value: str):
    robots = parse(f"User-Agent: {value}\nDisallow: /")

    assert not robots.decide("ExampleBot/0.1 (https://example.com/bot.html)", "/")


def test_the_token_is_part_of_the_identification_string():
    agent = UserAgent("Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)")

    assert agent.tokens == ("examplebot",)


def test_groups_of_one_token_are_combined_into_one():
    robots = parse(
        "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\n"
        "user-agent: BazBot\ndisallow: /qux\n\n"
        "user-agent: ExampleBot\ndisallow: /baz\n"
    )

    rules = robots.rules_for("ExampleBot")

    assert [rule.pattern for rule in rules.rules] == ["/foo", "/bar", "/baz"]


def test_a_crawler_without_a_group_of_its_own_obeys_the_star():
    robots = parse("user-agent: BazBot\ndisallow: /qux\nuser-agent: *\ndisallow: /foo")

    assert not robots.decide("ExampleBot", "/foo")
    assert robots.decide("ExampleBot", "/qux")


def test_a_group_of_its_own_without_rules_still_keeps_the_star_away():
    robots = parse("user-agent: *\ndisallow: /\nuser-agent: ExampleBot")

    assert robots.decide("ExampleBot", "/")


def test_no_group_and_no_star_means_no_rules():
    decision = parse("user-agent: BazBot\ndisallow: /").decide("ExampleBot", "/")

    assert decision.allowed
    assert decision.reason is Reason.NO_GROUP
