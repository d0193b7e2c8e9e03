"""Patterns and the indexes of many: what RuleIndex, KeywordIndex and ShiftAnd find is what each rule alone would have said."""

import time
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.pattern import Grammar, grammar, matches, shape_matches, shape_matches_linearly
from polite.robots.rule_index import MOST_RULES, KeywordIndex, RuleIndex, ShiftAnd

GRAMMAR = grammar(RFC9309)
WORDS = [f"{letter}{figure}word" for letter in "abcdef" for figure in "0123456789"]


def first(texts: list[str], path: str, dialect: Dialect = RFC9309) -> int:
    """The rank of the first of these rules that matches a path, found by trying each."""
    each = enumerate(map(grammar(dialect).matcher, texts))
    return next((rank for rank, matcher in each if matches(matcher, path)), len(texts))


# Each the strongest first: heads that start one another, rules without a head, stars at an end, escapes, many of one head.
SETS = {
    "heads in heads": ["/a/b/c", "/a/b*x", "/a/b", "/*y$", "/a*z", "/a", "nowhere"],
    "stars first": ["*/c$", "/a/b*", "/a/*$", "*/b"],
    "a head without a literal rule": ["/ab*c/long", "/abd*e", "/a"],
    "stars behind a literal rule": ["/a****", "/ab", "/b*c"],
    "a strong rule of an ancestor": ["/a*", "/abc", "/ab", "/b*c"],
    "a head without a wildcard rule": ["/a*long-rule", "/abcd", "/abc"],
    "escapes": ["/a%2Ab*c", "/a%24", "/a$"],
    "many heads": [f"/{head}*{number}" for head in "abc" for number in range(100, 140)],
    "everything": ["/*"],
    "nothing": [],
}

PATHS = """
    / /a /a/b /a/b/c/d /a/b/x /a/y /a/yy/ /az /a/bz /ab /b /y /c /a/ /d /ab/x /abcc/long /abc/long-rule
    /abcde /a*bc /a$b /axbc /b/120 /d/120 /nowhere
""".split()


@pytest.mark.parametrize("texts", SETS.values(), ids=SETS)
@pytest.mark.parametrize("dialect", [RFC9309, CLASSIC], ids=lambda dialect: dialect.name)
def test_the_strongest_rule_is_found_that_trying_each_finds(texts: list[str], dialect: Dialect):
    index = RuleIndex(texts, grammar(dialect))
    assert [index.strongest(path) for path in PATHS] == [first(texts, path, dialect) for path in PATHS]


def index(*tails: str) -> KeywordIndex:
    return KeywordIndex("/", range(len(tails)), [f"/*{tail}" for tail in tails], GRAMMAR, tails)


# More rules than are tried one by one, under a few keys alone: in order, out of order, anchored, and with escapes.
CROWD = [
    f"{a}*{b}{end}" for a, b, end in product("abcdefghij", "0123456789", ("", "$", "*%2A", "*%24*z", "*c$"))
]
# The same with many beside them that keys tell apart, before them and behind.
MIXED = [*[f"*{word}one" for word in WORDS], *CROWD, *[f"{n}word{n}*two" for n in range(2_000)]]
TAILS = {
    "under one key": [f"?aaaaaaa*{word}" for word in WORDS],
    "nothing to look for": [*WORDS, "$"],
    "keys of any length": ["ax", "a1x", "a12x", "a", *("a" + word[:length] for length in range(6) for word in WORDS)],
    "queries": [f"?sort={word}&*=" for word in WORDS],
    "crowd": CROWD,
    "mixed": MIXED,
    "more": [*CROWD, *MIXED, *CROWD],
}  # fmt: skip

ASKED = f"""
    / /a0 /ab0 /9j /e*5 /e$5 /e5$z /f0wordone /1999word1999two /aé0 /ax/and /a1x
    /{WORDS[7]}?aaaaaaa /?aaaaaaa/{WORDS[7]} /p?sort={WORDS[30]}&b= /p/sort={WORDS[30]}&b=
""".split()


@pytest.mark.parametrize("tails", TAILS.values(), ids=TAILS)
def test_a_crowd_matches_as_each_rule_alone_does(tails: list[str]) -> None:
    each = [GRAMMAR.shape(f"/*{tail}") for tail in tails]
    crowd = index(*tails)
    for path in ASKED:
        expected = next((rank for rank, shape in enumerate(each) if shape_matches(shape, path)), 9_999)
        assert crowd.strongest(path, 9_999) == expected
        assert crowd.strongest(path, expected) == expected


TEXTS = st.lists(st.text(alphabet="abc*$%2A4/\1\2", min_size=1, max_size=9), min_size=1, max_size=12)


@given(tails=TEXTS, path=st.text(alphabet="aabbcc*$%2A4/\1\2\n\x7f", max_size=14))
def test_the_automaton_finds_the_first_that_matches(tails: list[str], path: str) -> None:
    for dialect in (RFC9309, GOOGLE):
        grammar_ = grammar(dialect)
        normals = grammar_.normals([f"/x*{tail}" for tail in tails])
        asked = grammar_.path(f"/x{path}")
        automaton = ShiftAnd([each[3:] for each in normals], plain_specials=dialect.specials_equal_escapes)
        matching = (place for place, each in enumerate(normals) if shape_matches(grammar_.shape(each), asked))
        assert automaton.strongest(asked, 2) == next(matching, None)


@pytest.mark.parametrize("many", [MOST_RULES, MOST_RULES + 1])
def test_files_on_both_sides_of_the_limit_answer_alike(many: int):
    rules = parse("User-agent: *\n" + "".join(f"Disallow: /{n}/*x\n" for n in range(many))).rules_for("a")
    assert [rules.allows(path) for path in ("/0/y", "/0/x", f"/{many - 1}/x")] == [True, False, False]


@pytest.mark.parametrize("end", ["b", "b$", "*$"])
def test_many_stars_cost_no_more_than_their_number(end: str):
    pattern = grammar(RFC9309).pattern("/" + "a*" * 1_000 + end)
    path, started = "/" + "a" * 20_000, time.process_time()
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
    of_dialect, paths = Grammar(RFC9309), ["/wp-admin/", "/*?sort="]
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


@pytest.mark.parametrize(
    ("raw", "octets"), [("/a*", 3), ("/\xc3\xbc", 7), ("/%62", 2), ("/%2A", 4), ("/a b", 6), ("/a%20b", 6)]
)
def test_precedence_counts_the_octets_of_the_normal_form(raw: str, octets: int):
    assert grammar(RFC9309).pattern(raw).octets == octets
    assert grammar(GOOGLE_2010).pattern(raw[1:]).octets == grammar(GOOGLE_2010).pattern(raw).octets
