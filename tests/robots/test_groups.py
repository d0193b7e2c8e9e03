"""Groups: whom they name, and which of them bind a crawler."""

import pickle

from polite.robots.agent import UserAgent
from polite.robots.decision import Rule
from polite.robots.dialect import GOOGLE_2010, RFC9309, Dialect
from polite.robots.groups import Group, Sections, bind
from polite.robots.lines import Field
from polite.robots.rules import RuleSet

NEWS = Group(("ExampleBot-News/2",), (1,), ((False, "/1", 2),), ((Field.CRAWL_DELAY, "3"),))
BOTH = Group(("examplebot", "*"), (3, 4), ((False, "/2", 5), (True, "/\xc3\xbc", 6)))
MORE = Group(("EXAMPLEBOT",), (7,), ((False, "/3", 8),), ((Field.CRAWL_DELAY, "4"),))

FILE = """User-agent: ExampleBot-News/2
Disallow: /1
Crawl-delay: 3
user-agent: examplebot
user-agent: *
Disallow: /2
Allow: /\xc3\xbc
User-agent: EXAMPLEBOT
Disallow: /3
Crawl-delay: 4"""
OTHERS = FILE[: FILE.index("user-agent: examplebot")]


def bound(text: str, header: str, dialect: Dialect = RFC9309) -> RuleSet:
    return bind(Sections(text, dialect), UserAgent(header), dialect)


def test_a_group_names_the_crawlers_of_its_lines():
    assert NEWS.names("examplebot-news")
    assert not NEWS.names("examplebot")
    assert BOTH.names_all()
    assert not NEWS.names_all()


def test_a_groups_rules_read_as_people_write_them():
    assert BOTH.rules == (Rule(False, "/2", 5), Rule(True, "/ü", 6))


def test_the_first_name_that_any_group_bears_decides():
    rules = bound(FILE, "ExampleBot-News")

    assert (rules.group, rules.crawl_delay) == ("examplebot-news", 3.0)
    assert [rule.line for rule in rules.rules] == [2]


def test_groups_of_one_name_are_combined_unless_one_alone_is_valid():
    combined, alone = bound(FILE, "ExampleBot"), bound(FILE, "ExampleBot", GOOGLE_2010)

    assert ([rule.line for rule in combined.rules], combined.crawl_delay) == ([6, 7, 9], 4.0)
    assert ([rule.line for rule in alone.rules], alone.crawl_delay) == ([6, 7], None)


def test_everyone_else_obeys_the_star_or_nothing():
    assert bound(FILE, "Other").group == "*"
    assert bound(OTHERS, "Other").group is None


def test_a_group_pickles():
    assert pickle.loads(pickle.dumps([NEWS, BOTH])) == [NEWS, BOTH]  # noqa: S301 - our own octets
