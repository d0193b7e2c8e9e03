"""Index: the strongest rule that matches, among heads that start one another."""

import pytest

from polite.robots.dialect import CLASSIC, RFC9309
from polite.robots.pattern import grammar
from polite.robots.rule_index import RuleIndex

# By rank.
TEXTS = ["/a/b/c", "/a/b*x", "/a/b", "/*y$", "/a*z", "/a", "nowhere"]
INDEX = RuleIndex(TEXTS, grammar(RFC9309))


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("/a/b/c/d", 0),
        ("/a/b/x", 1),
        ("/a/b/y", 2),
        ("/a/b", 2),
        ("/a/y", 3),
        ("/a/yy/", 5),
        ("/az", 4),
        ("/a/bz", 2),
        ("/ab", 5),
        ("/b", 7),
        ("/y", 3),
        ("/nowhere", 7),
        ("/", 7),
    ],
)
def test_the_strongest_rule_is_found_at_the_longest_head_or_above_it(path: str, rank: int):
    assert INDEX.strongest(path) == rank


def test_where_any_rule_will_do_no_stronger_one_is_looked_for():
    assert INDEX.strongest("/a/b/x", any_will_do=True) == 2
    assert INDEX.strongest("/y", any_will_do=True) == 3


def test_an_index_of_nothing_finds_nothing():
    nothing = RuleIndex([], grammar(RFC9309))

    assert nothing.strongest("/a") == nothing.none == 0


@pytest.mark.parametrize("text", ["", "*", "*$", "/", "/*"])
def test_a_rule_that_starts_with_nothing_matches_everything(text: str):
    assert RuleIndex([text], grammar(RFC9309)).strongest("/") == 0


def test_rules_that_start_with_a_star_stand_above_all_others():
    index = RuleIndex(["*/c$", "/a/b*", "/a/*$", "*/b"], grammar(RFC9309))

    assert [index.strongest(path) for path in ("/c", "/a/b", "/a/", "/b", "/d")] == [0, 1, 2, 3, 4]


def test_a_head_without_a_literal_rule_has_that_of_its_ancestor():
    index = RuleIndex(["/ab*c/long", "/abd*e", "/a"], grammar(RFC9309))

    assert [index.strongest(path) for path in ("/ab/x", "/abdx", "/abcc/long", "/b")] == [2, 2, 0, 3]


def test_a_literal_rule_with_stars_behind_it_is_stronger_than_a_longer_head():
    index = RuleIndex(["/a****", "/ab", "/b*c"], grammar(RFC9309))

    assert index.strongest("/ab") == 0


def test_a_head_without_a_wildcard_rule_has_those_of_its_ancestors():
    index = RuleIndex(["/a*long-rule", "/abcd", "/abc"], grammar(RFC9309))

    assert [index.strongest(path) for path in ("/abc/long-rule", "/abcde/long-rule", "/abcde")] == [0, 0, 1]


def test_each_wildcard_rule_is_a_part_of_the_steps():
    one_head = [f"/a*{number}" for number in range(20)]
    heads = [f"/{number}*x" for number in range(20)]

    assert RuleIndex(one_head, grammar(RFC9309)).steps == RuleIndex(heads, grammar(RFC9309)).steps == 20 * 6
    many = RuleIndex([f"/a*{number:05}" for number in range(200)], grammar(RFC9309)).steps
    assert RuleIndex([f"/a*{n:05}" for n in range(200)] + heads, grammar(RFC9309)).steps == many + 20 * 6


def test_a_head_is_known_by_what_its_escapes_stand_for():
    index = RuleIndex(["/a%2Ab*c", "/a%24", "/a$"], grammar(RFC9309))

    assert [index.strongest(path) for path in ("/a*bc", "/a$b", "/a", "/axbc")] == [0, 1, 2, 3]


def test_without_wildcards_a_star_is_a_character():
    index = RuleIndex(["/a*b", "/a$", "/a"], grammar(CLASSIC))

    assert [index.strongest(path) for path in ("/a*b", "/a$x", "/axb", "/b")] == [0, 1, 2, 3]


def test_many_heads_with_wildcards_each_answer_for_themselves():
    texts = [f"/{head}*{number}" for head in "abc" for number in range(100, 140)]
    index = RuleIndex(texts, grammar(RFC9309))

    assert index.strongest("/b/120") == 60
    assert index.strongest("/d/120") == 120
