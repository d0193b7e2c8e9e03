"""Patterns apart from files: escape_normaliser, precedence, and time that stays linear."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309
from polite.robots.pattern import Grammar, grammar, is_linear, shape_matches, shape_matches_linearly


@pytest.mark.parametrize(
    "text", ["/a", "/%41%e3%2a%24%27", "/ \x00\x7f\"<>\\^`{|}'", "/%", "/%4", "/%%34%31", "/\xe3\x83\x84"]
)
@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
def test_the_normal_form_of_a_normal_form_is_itself(dialect, text: str):
    once = grammar(dialect).path(text)

    assert grammar(dialect).path(once) == once or "%%" in text


def test_an_escape_that_arises_from_decoding_is_not_decoded_again():
    assert grammar(RFC9309).path("/%%34%31") == "/%41"


@pytest.mark.parametrize(
    ("raw", "octets"),
    [
        ("/a", 2),
        ("/a*", 3),
        ("/a$", 3),
        ("/\xc3\xbc", 7),
        ("/%c3%BC", 7),
        ("/%62", 2),
        ("/%2A", 4),
        ("/a b", 6),
        ("/a%20b", 6),
        ("/it's", 5),
    ],
)
def test_precedence_counts_the_octets_of_the_normal_form(raw: str, octets: int):
    assert grammar(RFC9309).pattern(raw).octets == octets


def test_an_excluded_character_counts_as_itself_where_it_does_not_equal_its_escape():
    strict = replace(RFC9309, name="strict", excluded_equal_escapes=False)

    assert grammar(strict).pattern("/a b").octets == 4


def test_a_supplied_slash_counts():
    assert grammar(GOOGLE_2010).pattern("fish/").octets == grammar(GOOGLE_2010).pattern("/fish/").octets


@pytest.mark.parametrize(
    ("raw", "wild"),
    [
        ("/a", False),
        ("/a*", False),
        ("*", False),
        ("/a**$", False),
        ("/a*b", True),
        ("*a", True),
        ("/$", False),
    ],
)
def test_a_wildcard_counts_as_one_only_where_it_matters(raw: str, wild: bool):
    assert grammar(RFC9309).pattern(raw).has_wildcard is wild
    assert not grammar(CLASSIC).pattern(raw).has_wildcard


@pytest.mark.parametrize("stars", [30, 1_000])
@pytest.mark.parametrize("end", ["b", "b$", "*$"])
def test_many_stars_cost_no_more_than_their_number(stars: int, end: str):
    pattern = grammar(RFC9309).pattern("/" + "a*" * stars + end)
    path = "/" + "a" * 20_000

    started = time.process_time()
    for _ in range(10):
        pattern.matches(path)

    # A matcher that goes back needs longer than the universe for this; the bound allows for a slow machine.
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a#b", "/a"),
        ("/#", "/"),
        ("/ü#", "/%C3%BC"),
        ("/\ud800", "/%ED%A0%80"),
        ("//x", "//x"),
        ("/*$'", "/*$'"),
    ],
)
def test_a_path_loses_its_fragment_and_gains_escapes(path: str, normal: str):
    assert grammar(RFC9309).path(path) == normal


def test_google_escapes_a_path_only_outside_ascii():
    assert grammar(GOOGLE).path("/ü %62%aa{#x") == "/%C3%BC %62%aa{"


def test_what_repeats_its_own_start_close_by_is_not_tame():
    assert is_linear("a" * 16)
    assert is_linear("category-of-things")
    assert is_linear("/folder/with/a/folder/far/behind")
    assert not is_linear("a" * 17)
    assert not is_linear("ab" * 30 + "c")
    assert not is_linear("a" * 48 + "b" + "a" * 45)


@given(
    st.lists(st.sampled_from(["a" * 20, "a" * 30 + "b", "ab" * 20, "aab" * 9 + "a", "a", "b"]), max_size=4),
    st.lists(st.sampled_from(["a" * 25, "ab" * 30, "b", "a" * 40, "c", "aab" * 11]), max_size=9),
    st.booleans(),
)
def test_rules_that_are_not_tame_match_what_they_matched(pieces: list[str], parts: list[str], anchored: bool):
    shape = ("/", tuple(pieces), anchored and bool(pieces))
    path = "/" + "".join(parts)

    # Long enough for the two-way search, which takes over behind 100,000 comparisons.
    long = "/" + "c" * 4_000 + path[1:]

    assert shape_matches_linearly(shape, path) == shape_matches(shape, path)
    assert shape_matches_linearly(shape, long) == shape_matches(shape, long)


def test_paths_and_shapes_that_sites_share_are_kept_once():
    of_dialect = Grammar(RFC9309)
    paths = ["/wp-admin/", "/*?sort="]

    shared = of_dialect.shared(paths)

    assert shared == tuple(paths)
    assert of_dialect.shared(["".join(path) for path in map(list, paths)])[1] is shared[1]
    assert of_dialect.shared_shape("/*?sort=") == of_dialect.shape("/*?sort=")
    # Of what is compiled, a tuple of known length is another object for each caller.
    assert of_dialect.shared_shape("/*?sort=")[1] is of_dialect.shared_shape("/*?sort=")[1]


@pytest.mark.parametrize(
    "paths", [[f"/{each}" for each in range(65)], ["/" + "a" * 3_000]], ids=["many", "long"]
)
def test_paths_of_large_files_are_not_kept(paths: list[str]):
    of_dialect = Grammar(RFC9309)

    of_dialect.shared(paths)

    assert of_dialect.shared(["".join(list(paths[0]))])[0] is not paths[0]


def test_what_is_kept_for_other_sites_is_bounded():
    of_dialect = Grammar(RFC9309)
    first, shape = "/first/path"[:6], of_dialect.shared_shape("/*first")[1]
    assert of_dialect.shared([first])[0] is first

    for each in range(5_000):
        of_dialect.shared([f"/{each}"])
        of_dialect.shared_shape(f"/*{each}")

    assert of_dialect.shared(["".join(list(first))])[0] is not first
    assert of_dialect.shared_shape("/*first")[1] is not shape
    assert of_dialect.shared_shape("/*" + "a" * 50)[1] is not of_dialect.shared_shape("/*" + "a" * 50)[1]
