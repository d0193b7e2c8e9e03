"""DecisionTrace: the group, the rules that match, the winner's rank, the conflict, and the dialect's part in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.agent import UserAgent
from polite.robots.dialect import BY_NAME, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from tests.support import examples

FILE = """\
User-agent: *
Disallow: /
User-agent: examplebot
  Disallow :  /fish  # and what swims
Allow: /fish/salmon
Allow: /f
"""


def test_every_matching_rule_is_listed_in_order_with_its_line():
    explained = parse(FILE).explain("ExampleBot/1.0", "https://example.com/fish/salmon?big")

    assert [(m.rule.line, m.column, m.octets) for m in explained.matches] == [
        (5, 8, 12),
        (4, 15, 5),
        (6, 8, 2),
    ]
    assert explained.winner == explained.matches[0]
    assert explained.decision == parse(FILE).decide("ExampleBot/1.0", "/fish/salmon?big")


def test_the_group_is_named_with_its_lines_and_with_what_was_not_found():
    explained = parse(FILE, GOOGLE_2019).explain("examplebot-news", "/x")
    assert (explained.group, explained.names) == ("examplebot", ("examplebot-news", "examplebot"))
    assert [group.lines for group in explained.groups] == [(3,)]
    assert "group: examplebot (line 3), since none is for examplebot-news" in str(explained)


@pytest.mark.parametrize("dialect", [GOOGLE_2010, GOOGLE_2019], ids=lambda dialect: dialect.name)
def test_a_conflict_that_the_document_leaves_undefined_is_named(dialect: Dialect):
    explained = parse("User-agent: *\nAllow: /page\nDisallow: /*.htm\n", dialect).explain("x", "/page.htm")
    assert explained.conflict.line == 2
    assert "undefined: the document gives no order between it and Allow: /page (line 2)" in str(explained)


@pytest.mark.parametrize(
    ("body", "dialect", "field", "names"),
    [
        ("Disallow: /a%62\n", RFC9309, "decodes_unreserved", ("google",)),
        ("Disallow: a\n", RFC9309, "supplies_slash", ("google-2010",)),
        ("Disalow: /a\n", GOOGLE_2019, "misspellings", ("google", "google-2010")),
        ("Disallow: /a\nAllow: /ab\n", RFC9309, "has_allow", ("classic",)),
        ("Disallow: /a\n", RFC9309, None, ()),
    ],
)
def test_the_field_of_the_dialect_that_mattered_is_named(body, dialect, field, names):
    explained = parse(f"User-agent: *\n{body}", dialect).explain("x", "/ab")
    found = {each.field: each.dialects for each in explained.sensitive_to}
    assert found.get(field, ()) == names
    assert bool(found) is (f"dialect: {field}=" in str(explained)) is (field is not None)


@examples(100, fast=20)
@given(
    st.binary(max_size=150) | st.text("user-agent:*\ndisallow:/ab$", max_size=80).map(str.encode),
    st.sampled_from([*BY_NAME.values()]),
    st.text("/ab*$%2", max_size=8).map("/{}".format),
)
def test_any_file_can_be_explained(body: bytes, dialect: Dialect, path: str):
    robots = parse(body, dialect)
    explained = robots.explain(UserAgent("a-b"), path)
    assert explained.decision == robots.decide("a-b", path)
    assert str(explained)
    assert all(match.column > 0 for match in explained.matches)
    assert (explained.winner is None) is (explained.decision.rule is None)
