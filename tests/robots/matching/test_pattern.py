"""Patterns apart from files: escapes, precedence, and time that stays linear."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import GOOGLE_2010, RFC9309
from polite.robots.pattern import Grammar, grammar, shape_matches, shape_matches_linearly


@pytest.mark.parametrize(
    ("raw", "octets"),
    [("/a*", 3), ("/\xc3\xbc", 7), ("/%62", 2), ("/%2A", 4), ("/a b", 6), ("/a%20b", 6)],
)
def test_precedence_counts_the_octets_of_the_normal_form(raw: str, octets: int):
    assert grammar(RFC9309).pattern(raw).octets == octets
    assert grammar(GOOGLE_2010).pattern(raw[1:]).octets == grammar(GOOGLE_2010).pattern(raw).octets


@pytest.mark.parametrize("end", ["b", "b$", "*$"])
def test_many_stars_cost_no_more_than_their_number(end: str):
    pattern = grammar(RFC9309).pattern("/" + "a*" * 1_000 + end)
    path = "/" + "a" * 20_000

    started = time.process_time()
    for _ in range(10):
        pattern.matches(path)

    # A matcher that goes back needs longer than the universe for this; the bound allows for a slow machine.
    assert time.process_time() - started < 5.0


@given(
    st.lists(st.sampled_from(["a" * 20, "a" * 30 + "b", "ab" * 20, "aab" * 9 + "a", "a", "b"]), max_size=4),
    st.lists(st.sampled_from(["a" * 25, "ab" * 30, "b", "a" * 40, "c", "aab" * 11]), max_size=9),
    st.booleans(),
)
def test_rules_that_are_not_tame_match_what_they_matched(pieces: list[str], parts: list[str], anchored: bool):
    shape = ("/", tuple(pieces), anchored and bool(pieces))
    path = "/" + "".join(parts)

    # The second is long enough for the two-way search, which takes over behind 100,000 comparisons.
    for asked in (path, "/" + "c" * 4_000 + path[1:]):
        assert shape_matches_linearly(shape, asked) == shape_matches(shape, asked)


def test_paths_and_shapes_that_sites_share_are_kept_once_and_no_more_than_some():
    of_dialect = Grammar(RFC9309)
    paths = ["/wp-admin/", "/*?sort="]
    shared, shape = of_dialect.shared(paths), of_dialect.shared_shape("/*first")

    assert shared == tuple(paths)
    assert of_dialect.shared(["".join(path) for path in map(list, paths)])[1] is shared[1]
    assert shape == of_dialect.shape("/*first")
    # Of what is compiled, a tuple of known length is another object for each caller.
    assert of_dialect.shared_shape("/*first")[1] is shape[1]

    for each in range(5_000):
        of_dialect.shared([f"/{each}"])
        of_dialect.shared_shape(f"/*{each}")

    assert of_dialect.shared(["".join(list(paths[0]))])[0] is not paths[0]
    assert of_dialect.shared_shape("/*first")[1] is not shape[1]
    assert of_dialect.shared_shape("/*" + "a" * 50)[1] is not of_dialect.shared_shape("/*" + "a" * 50)[1]


TEXT = "/%61%2a%24%27%2f%c3%a9'é |%zz%"


@pytest.mark.parametrize(
    ("unreserved", "specials", "excluded", "expected"),
    [
        (False, False, False, "/%61%2A%24%27%2F%C3%A9'%C3%A9 |%zz%"),
        (True, False, False, "/a%2A%24%27%2F%C3%A9'%C3%A9 |%zz%"),
        (False, True, False, "/%61*$%27%2F%C3%A9'%C3%A9 |%zz%"),
        (False, False, True, "/%61%2A%24'%2F%C3%A9'%C3%A9 |%zz%"),
        (True, True, True, "/a*$'%2F%C3%A9'%C3%A9 |%zz%"),
    ],
)
def test_each_option_changes_its_own_characters(unreserved, specials, excluded, expected):
    options = {
        "decodes_unreserved": unreserved,
        "specials_equal_escapes": specials,
        "excluded_equal_escapes": excluded,
    }

    assert grammar(replace(RFC9309, name="own", **options)).path(TEXT) == expected


@pytest.mark.parametrize(
    ("path", "normal"),
    [("/a#b", "/a"), ("/ü#", "/%C3%BC"), ("/\ud800", "/%ED%A0%80"), ("//x", "//x"), ("/*$'", "/*$'")],
)
def test_a_path_loses_its_fragment_and_gains_escapes(path: str, normal: str):
    assert grammar(RFC9309).path(path) == normal


def test_every_octet_has_one_spelling_however_it_is_written():
    def normal(raw: str) -> str:
        return grammar(RFC9309).normals([raw])[0]

    differing = {chr(octet) for octet in range(256) if normal(chr(octet)) != normal(f"%{octet:02x}")}

    # A rule holds neither of the last two as it is; the two before are special.
    assert differing == set(":/?[]@!&()+,;=%*$#\n")


def test_no_escape_is_decoded_twice():
    literal = grammar(replace(RFC9309, name="literal", reserved_equal_escapes=True))

    assert literal.path("/%253A%25%33A%3%41") == "/%253A%253A%3A"
    assert literal.path(literal.path("/%253A%3A")) == literal.path("/%253A%3A")


ESCAPES = st.text(st.sampled_from("%%%4142aAfFeEzZ/-~*\xe9\xff"), max_size=40)


@given(ESCAPES, st.integers(65_500, 65_540))
def test_a_text_is_rewritten_alike_wherever_it_stands_in_a_long_one(text: str, before: int):
    (long,) = grammar(RFC9309).normals(["x" * before + text])

    assert long == "x" * before + grammar(RFC9309).normals([text])[0]
