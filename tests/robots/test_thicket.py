"""Thicket: few rules tried, many looked up, and the same one found."""

from itertools import combinations

import pytest

from polite.robots.pattern import Shape, fits
from polite.robots.thicket import Thicket, needle

WORDS = [f"{letter}{figure}word" for letter in "abcdef" for figure in "0123456789"]


def thicket(*pieces: tuple[str, ...]) -> Thicket:
    shapes = {rank: ("/", each, False) for rank, each in enumerate(pieces)}
    return Thicket(list(shapes), shapes)


@pytest.mark.parametrize("many", [3, 24, 25, 60])
def test_the_strongest_that_matches_is_found_among_few_and_many(many: int):
    words = thicket(*[(word,) for word in WORDS[:many]])

    assert words.strongest(f"/{WORDS[2]}/{WORDS[1]}", 99) == 1
    assert words.strongest("/word", 99) == 99


@pytest.mark.parametrize("many", [3, 60])
def test_a_rule_no_stronger_than_the_one_known_is_left_alone(many: int):
    words = thicket(*[(word,) for word in WORDS[:many]])

    assert words.strongest(f"/{WORDS[2]}", 2) == 2
    assert words.strongest(f"/{WORDS[2]}", 1) == 1


def test_rules_under_one_key_are_told_apart():
    same = thicket(*[("?aaaaaaa", word) for word in WORDS])

    assert same.strongest(f"/{WORDS[7]}?aaaaaaa", 99) == 99
    assert same.strongest(f"/?aaaaaaa/{WORDS[7]}", 99) == 7


def test_a_rule_that_holds_nothing_to_look_for_is_found_in_a_crowd():
    shapes = {rank: ("/", (word,), False) for rank, word in enumerate(WORDS)} | {60: ("/", (), True)}

    assert Thicket(list(shapes), shapes).strongest("/", 99) == 60


def test_the_needle_is_the_longest_piece():
    assert needle(("/", ("a", "bcd", "ef"), False)) == "bcd"
    assert needle(("/", (), True)) == ""


def test_keys_of_any_length_are_found_under_one_character():
    lengths = [("a" + word[:length],) for length in range(6) for word in WORDS[10:20]]

    short = thicket(*dict.fromkeys([("ax",), ("a1x",), ("a12x",), ("a",), *lengths]))

    assert short.strongest("/ax/and/more", 99) == 0
    assert short.strongest("/a1x/and/more", 99) == 1
    assert short.strongest("/a/more", 99) == 3


# Rules of so many pieces that a table of the path is made: short pieces, and one that the table does not know.
STARRY: list[Shape] = [
    ("/", (*some, last), anchored)
    for some in combinations("abcdefghijkl", 9)
    for last, anchored in (("0", False), ("yz", True), ("long", False))
]


@pytest.mark.parametrize(
    "path",
    [
        "/abcdefghijkl",
        "/0abcdefghijkl",
        "/abcdefghijk0l",
        "/0bcdefghijkyz",
        "/yzabcdefghij",
        "/bcdefghijlongkl",
        "/longabcdefghijkl",
        "/" + "abcdefghijkl" * 30 + "0",
        "/",
    ],
    ids=lambda path: path[:20],
)
def test_rules_of_many_pieces_match_as_each_alone_does(path: str):
    starry = Thicket(list(range(len(STARRY))), STARRY)

    found = starry.strongest(path, 999)

    assert found == next((rank for rank, shape in enumerate(STARRY) if fits(shape, path)), 999)


def test_searches_for_long_pieces_beyond_the_table_end_and_the_answer_stays():
    # Each rule searches for long pieces that are there, and only the very last matches.
    long = ("/", ("a", "long") * 6 + ("0",), False)
    shapes: list[Shape] = [long] * 600 + [("/", ("a", "long") * 6, False)]

    assert Thicket(list(range(601)), shapes).strongest("/0" + "along" * 6, 999) == 600
