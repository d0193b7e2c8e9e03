"""KeywordIndex: few rules tried, many looked up, buckets walked together, and the same one found."""

from itertools import product

import pytest

from polite.robots.dialect import RFC9309
from polite.robots.pattern import grammar, shape_matches
from polite.robots.rule_index import KeywordIndex, needle

WORDS = [f"{letter}{figure}word" for letter in "abcdef" for figure in "0123456789"]
GRAMMAR = grammar(RFC9309)


def index(*tails: str) -> KeywordIndex:
    """The rules `/*` with these behind it, the strongest first."""
    return KeywordIndex("/", range(len(tails)), [f"/*{tail}" for tail in tails], GRAMMAR, tails)


@pytest.mark.parametrize("many", [3, 24, 25, 60])
def test_the_strongest_that_matches_is_found_among_few_and_many(many: int) -> None:
    words = index(*WORDS[:many])

    assert words.strongest(f"/{WORDS[2]}/{WORDS[1]}", 99) == 1
    assert words.strongest("/word", 99) == 99


@pytest.mark.parametrize("many", [3, 60])
def test_a_rule_no_stronger_than_the_one_known_is_left_alone(many: int) -> None:
    words = index(*WORDS[:many])

    assert words.strongest(f"/{WORDS[2]}", 2) == 2
    assert words.strongest(f"/{WORDS[2]}", 1) == 1


def test_rules_under_one_key_are_told_apart() -> None:
    same = index(*[f"?aaaaaaa*{word}" for word in WORDS])

    assert same.strongest(f"/{WORDS[7]}?aaaaaaa", 99) == 99
    assert same.strongest(f"/?aaaaaaa/{WORDS[7]}", 99) == 7


def test_a_rule_that_holds_nothing_to_look_for_is_found_in_a_crowd() -> None:
    texts = [*[f"/*{word}" for word in WORDS], "/$"]

    crowd = KeywordIndex("/", range(61), texts, GRAMMAR, [*WORDS, ""])

    assert crowd.strongest("/", 99) == 60


def test_the_needle_is_the_longest_piece() -> None:
    assert needle(("/", ("a", "bcd", "ef"), False)) == "bcd"
    assert needle(("/", (), True)) == ""


def test_keys_of_any_length_are_found_under_one_character() -> None:
    lengths = ["a" + word[:length] for length in range(6) for word in WORDS[10:20]]

    short = index(*dict.fromkeys(["ax", "a1x", "a12x", "a", *lengths]))

    assert short.strongest("/ax/and/more", 99) == 0
    assert short.strongest("/a1x/and/more", 99) == 1
    assert short.strongest("/a/more", 99) == 3


def test_many_rules_about_queries_are_told_apart() -> None:
    queries = index(*[f"?sort={word}&*=" for word in WORDS])

    assert queries.strongest(f"/page?sort={WORDS[30]}&by=name", 99) == 30
    assert queries.strongest(f"/page/sort={WORDS[30]}&by=name", 99) == 99


# More rules than are tried one by one, under a few keys alone: in order, out of order, anchored, and with escapes.
CROWD = [
    f"{a}*{b}{end}" for a, b, end in product("abcdefghij", "0123456789", ("", "$", "*%2A", "*%24*z", "*c$"))
]
# The same with many beside them that keys tell apart, before them and behind.
MIXED = [*[f"*{word}one" for word in WORDS], *CROWD, *[f"{n}word{n}*two" for n in range(2_000)]]


@pytest.mark.parametrize("tails", [CROWD, MIXED, [*CROWD, *MIXED, *CROWD]], ids=["crowd", "mixed", "more"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a0",
        "/0a",
        "/ab0",
        "/j9c",
        "/9j",
        "/e*5",
        "/e5*",
        "/e$5",
        "/5e5$$",
        "/e5$z",
        "/f0wordone",
        "/1999word1999two",
        "/aé0",
    ],
)
def test_a_crowd_matches_as_each_rule_alone_does(tails: list[str], path: str) -> None:
    each = [GRAMMAR.shape(f"/*{tail}") for tail in tails]

    found = index(*tails).strongest(path, 9_999)

    assert found == next((rank for rank, shape in enumerate(each) if shape_matches(shape, path)), 9_999)
    assert index(*tails).strongest(path, found) == found
