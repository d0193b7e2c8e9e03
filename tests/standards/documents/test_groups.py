"""How lines form groups: rows G1 to G6 of the digest, with the documents' own examples."""

from dataclasses import replace

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason

ALL = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
every_dialect = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
combining_dialects = pytest.mark.parametrize(
    "dialect", [CLASSIC, GOOGLE_2019, RFC9309, GOOGLE], ids=lambda dialect: dialect.name
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


@every_dialect
@pytest.mark.parametrize(
    ("agent", "forbidden"), [("a", ["/c"]), ("b", ["/d"]), ("e", ["/g"]), ("f", ["/g"]), ("h", [])]
)
def test_g1_the_documents_example_has_a_group_for_each(dialect: Dialect, agent: str, forbidden: list[str]):
    robots = parse(FOUR_GROUPS, dialect)

    refused = [path for path in ("/c", "/d", "/g") if not robots.decide(agent, path)]

    assert refused == forbidden


@every_dialect
def test_g1_a_field_that_is_no_rule_leaves_the_agents_together(dialect: Dialect):
    robots = parse("User-agent: a\nCrawl-delay: 5\nNoindex: /x\nUser-agent: b\nDisallow: /", dialect)

    assert not robots.decide("a", "/")
    assert robots.rules_for("b").crawl_delay == 5.0


@pytest.mark.parametrize("line", ["Crawl-delay: 5", "Noindex: /x"])
def test_g1_a_dialect_may_let_any_field_part_the_agents(line: str):
    strict = replace(RFC9309, any_field_ends_agents=True)

    robots = parse(f"User-agent: a\n{line}\nUser-agent: b\nDisallow: /", strict)

    assert robots.decide("a", "/")
    assert not robots.decide("b", "/")


@every_dialect
def test_g2_a_group_ends_at_the_user_agent_line_after_a_rule(dialect: Dialect):
    robots = parse("User-agent: a\nDisallow: /a\nUser-agent: b\nDisallow: /b", dialect)

    assert robots.decide("a", "/b")
    assert not robots.decide("b", "/b")


BLANK_BETWEEN_AGENTS = [
    "User-agent: a\n\n",
    "User-agent: a\n \t\n",
    "User-agent: a\n\n# comment\n",
    "User-agent: a\n#\n\n",
]


@pytest.mark.parametrize("start", BLANK_BETWEEN_AGENTS)
@pytest.mark.parametrize(
    "dialect", [GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE], ids=lambda dialect: dialect.name
)
def test_g2_blank_lines_do_not_part_user_agents(dialect: Dialect, start: str):
    robots = parse(f"{start}User-agent: b\nDisallow: /", dialect)

    assert not robots.decide("a", "/")


@pytest.mark.parametrize("start", BLANK_BETWEEN_AGENTS)
def test_g2_in_classic_blank_lines_part_user_agents(start: str):
    robots = parse(f"{start}User-agent: b\nDisallow: /", CLASSIC)

    assert robots.decide("a", "/")
    assert not robots.decide("b", "/")


def test_g2_in_classic_a_comment_alone_parts_nothing():
    robots = parse("User-agent: a\n# and also\nUser-agent: b\nDisallow: /", CLASSIC)

    assert not robots.decide("a", "/")


@every_dialect
def test_g3_a_rule_above_any_user_agent_line_is_ignored(dialect: Dialect):
    robots = parse("Disallow: /\nCrawl-delay: 9\nUser-agent: *\nDisallow: /b", dialect)

    assert robots.decide("a", "/a")
    assert not robots.decide("a", "/b")
    assert robots.rules_for("a").crawl_delay is None


@every_dialect
def test_g4_a_last_group_without_rules_allows_everything(dialect: Dialect):
    robots = parse("user-agent: *\ndisallow: /\nuser-agent: h", dialect)

    decision = robots.decide("h", "/c")

    assert decision.allowed
    assert decision.reason is Reason.NO_RULE


FINNISH_EXAMPLE_2 = """\
user-agent: googlebot-news
disallow: /fish

user-agent: *
disallow: /carrots

user-agent: googlebot-news
disallow: /shrimp
"""


@combining_dialects
def test_g5_groups_of_one_agent_are_combined(dialect: Dialect):
    robots = parse(FINNISH_EXAMPLE_2, dialect)

    refused = [path for path in ("/fish", "/carrots", "/shrimp") if not robots.decide("googlebot-news", path)]

    assert refused == ["/fish", "/shrimp"]
    assert not robots.decide("otherbot", "/carrots")


@combining_dialects
def test_g5_groups_for_everyone_are_combined_and_the_slowest_pace_holds(dialect: Dialect):
    robots = parse(
        "User-agent: *\nDisallow: /a\nCrawl-delay: 2\nUser-agent: *\nDisallow: /b\nCrawl-delay: 7", dialect
    )

    rules = robots.rules_for("a")

    assert [rule.pattern for rule in rules.rules] == ["/a", "/b"]
    assert rules.crawl_delay == 7.0


def test_g5_in_google_2010_one_group_alone_is_valid_and_it_is_the_first():
    robots = parse(FINNISH_EXAMPLE_2, GOOGLE_2010)

    assert not robots.decide("googlebot-news", "/fish")
    assert robots.decide("googlebot-news", "/shrimp")


@every_dialect
def test_g6_a_sitemap_ends_no_group_and_belongs_to_none(dialect: Dialect):
    strict = replace(dialect, any_field_ends_agents=True)
    sitemap = "Sitemap: https://example.com"
    body = f"User-agent: a\n{sitemap}/s.xml\nUser-agent: b\nDisallow: /c\n{sitemap}/t.xml\nDisallow: /d"

    robots = parse(body, strict)

    assert not robots.decide("a", "/c")
    assert not robots.decide("b", "/d")
    assert robots.sitemaps == ("https://example.com/s.xml", "https://example.com/t.xml")
