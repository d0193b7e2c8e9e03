"""Index: the strongest rule that matches, among heads that start one another."""

import pytest

from polite.robots.index import Index

# By rank: literal texts, and shapes of head, pieces and whether they are anchored.
MATCHERS = [
    "/a/b/c",
    ("/a/b", ("x",), False),
    "/a/b",
    ("/", ("y",), True),
    ("/a", ("z",), False),
    "/a",
    "nowhere",
]
INDEX = Index(MATCHERS)


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
    assert Index([]).strongest("/a") == Index([]).none == 0


def test_a_rule_that_starts_with_nothing_matches_everything():
    assert Index([""]).strongest("/") == 0
