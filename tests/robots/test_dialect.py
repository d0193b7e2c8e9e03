"""The five dialects by name, and a sixth of one's own."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from polite.errors import InvalidOption
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect, dialect
from polite.robots.parse import Robots, parse
from tests.support import STRICT


@pytest.mark.parametrize("known", [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE])
def test_each_dialect_is_found_by_its_name(known: Dialect):
    assert dialect(known.name) is known


@pytest.mark.parametrize("name", ["", "google-2020", "RFC9309"])
def test_an_unknown_dialect_is_refused_with_the_known_ones(name: str):
    with pytest.raises(InvalidOption, match="classic, google-2010, google-2019, rfc9309, google"):
        dialect(name)


def test_every_dialect_counts_the_first_500_kib():
    assert {each.max_bytes for each in (CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE)} == {512_000}


# What the default reads though it breaks the grammar, and a path that it forbids.
CAREFUL = {
    "a raw space": (b"User-agent: *\nDisallow: /my files/", "/my%20files/a"),
    "a brace": (b"User-agent: *\nDisallow: /*/{id}/", "/x/%7Bid%7D/"),
    "a misspelt disallow": (b"User-agent: *\nDissalow: /a", "/a"),
    "a misspelt user-agent": (b"User agent: *\nDisallow: /a", "/a"),
    "no colon": (b"User-agent *\nDisallow /a", "/a"),
    "UTF-16": ("User-agent: *\nDisallow: /a".encode("utf-16"), "/a"),
    "UTF-32": ("User-agent: *\nDisallow: /a".encode("utf-32"), "/a"),
}


@pytest.mark.parametrize(("body", "path"), CAREFUL.values(), ids=CAREFUL)
def test_the_default_reads_what_was_evidently_meant_and_the_strict_reading_is_one_replace_away(
    body: bytes, path: str
):
    assert not parse(body).decide("ExampleBot", path)
    assert not parse(body).rules_for("ExampleBot").allows(path)
    assert parse(body, STRICT).decide("ExampleBot", path)


@pytest.mark.parametrize("dialect", [CLASSIC, GOOGLE_2019], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("body", "path"), CAREFUL.values(), ids=CAREFUL)
def test_a_dialect_of_a_document_reads_what_its_document_says(dialect: Dialect, body: bytes, path: str):
    assert parse(body, dialect).decide("ExampleBot", path)


@pytest.mark.parametrize("line", ["Alow: /a", "Allow /a", "Allowed: /a", "Allow: /a/index.html"])
def test_the_default_does_not_read_what_only_allows_more(line: str):
    assert not parse(f"User-agent: *\nDisallow: /\n{line}").decide("ExampleBot", "/a/")


def test_google_reads_an_allow_without_its_colon():
    body = "User-agent: *\nDisallow: /\nAllow /a"

    assert parse(body, GOOGLE).decide("ExampleBot", "/a")
    assert parse(body, replace(RFC9309, allow_needs_colon=False)).decide("ExampleBot", "/a")


def test_two_words_of_prose_are_no_field():
    robots = parse("User-agent: *\nhello world\nDisallow: /a")

    assert dict(robots.extensions) == {}
    assert [rule.pattern for rule in robots.groups[0].rules] == ["/a"]


@pytest.mark.parametrize(("longer", "path"), [("/a b", "/a%20b"), ("/a%20b", "/a%20b"), ("/a\tb", "/a%09b")])
def test_a_character_that_no_url_holds_counts_as_its_escape(longer: str, path: str):
    body = f"User-agent: *\nAllow: /a*b$\nDisallow: {longer}"

    assert not parse(body).decide("ExampleBot", path)


def test_excluded_characters_equal_their_escapes_in_a_url_that_is_taken_as_it_is():
    own = replace(GOOGLE, name="mine", excluded_equal_escapes=True)

    assert not parse("User-agent: *\nDisallow: /a b", own).decide("ExampleBot", "/a%20b")
    assert parse("User-agent: *\nDisallow: /%C3%BC", own).decide("ExampleBot", "/%c3%bc")


def test_a_dialect_is_frozen_and_hashable():
    with pytest.raises(FrozenInstanceError):
        RFC9309.has_allow = False

    assert len({RFC9309, replace(RFC9309), GOOGLE}) == 2


def test_every_field_is_explained():
    explained = Dialect.__doc__ or ""

    assert [each.name for each in fields(Dialect) if f"    {each.name}: " not in explained] == []


def test_a_sixth_dialect_differs_in_the_fields_it_names():
    tolerant = replace(RFC9309, name="mine", misspellings=(("dissallow", "disallow"),), max_line_bytes=20)

    robots = parse("user-agent: *\ndissallow: /1234567890", tolerant)

    assert robots.dialect is tolerant
    assert not robots.decide("ExampleBot", "/12345678")


def test_google_ends_a_line_at_a_nul_and_after_so_many_octets():
    line = "disallow: /" + "a" * 20_000

    assert not parse(f"user-agent: *\n{line}", GOOGLE).decide("x", "/" + "a" * 16_652)
    assert parse(f"user-agent: *\n{line}", GOOGLE).decide("x", "/" + "a" * 16_651)
    assert not parse("user-agent: *\ndisallow: /a\0b", GOOGLE).decide("x", "/ac")
    assert parse("user-agent: *\ndisallow: /a\0b", RFC9309).decide("x", "/ac")


@pytest.mark.parametrize("page", ["/a/index.html", "/a/index.htm", "/a/index.htmx"])
def test_google_takes_an_allowed_index_page_for_its_folder(page: str):
    body = f"user-agent: *\ndisallow: /\nallow: {page}"

    decision = parse(body, GOOGLE).decide("x", "/a/")

    assert decision.rule is not None
    assert decision.rule.pattern == page
    assert not parse(body, GOOGLE).decide("x", "/a/b")
    assert not parse(body, RFC9309).decide("x", "/a/")


def test_an_index_page_that_matches_in_both_ways_is_one_rule():
    rules = parse("user-agent: *\ndisallow: /*a/index\nallow: /*/index.html", GOOGLE).rules_for("x")

    assert [rule.line for rule in rules.matching("/a/index.html/")] == [3, 2]


@pytest.mark.parametrize(
    ("rule", "path"), [("/%62", "/b"), ("/%2A", "/*"), ("/%24", "/$"), ("/b", "/%62"), ("/%aa", "/%aa")]
)
def test_google_decodes_nothing_and_takes_a_url_as_it_is(rule: str, path: str):
    body = f"user-agent: *\ndisallow: {rule}"

    assert parse(body, GOOGLE).decide("x", path)
    assert not parse(body, RFC9309).decide("x", path)


def test_google_makes_the_digits_of_a_rules_escapes_upper_case():
    assert not parse("user-agent: *\ndisallow: /%aa", GOOGLE).decide("x", "/%AA")


def test_google_does_not_exempt_robots_txt():
    assert not parse("user-agent: *\ndisallow: /", GOOGLE).decide("x", "/robots.txt")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_bytes", -1),
        ("max_bytes", 1.5),
        ("max_line_bytes", 0),
        ("has_allow", "no"),
        ("wildcard_conflict", True),
        ("misspellings", "abc"),
        ("extends_fields", True),
        ("extends_fields", ("nonsense",)),
        ("extends_fields", "disallow"),
        ("misspellings", (("Alow", "allow"),)),
        ("misspellings", (("alow", "alow"),)),
    ],
)
def test_what_cannot_be_a_dialect_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"Dialect: {field} must be"):
        replace(RFC9309, **{field: value})


LITERAL = replace(RFC9309, name="literal", reserved_equal_escapes=True)


def test_dialects_that_differ_in_one_field_are_not_equal():
    for field in ("reserved_equal_escapes", "escaped_slash_differs", "colonless_values", "dollar_is_both"):
        changed = replace(RFC9309, **{field: True})
        assert changed != RFC9309
        assert getattr(RFC9309, field) is False
        with pytest.raises(InvalidOption, match=f"Dialect: {field} must be"):
            replace(RFC9309, **{field: "yes"})


def test_a_file_in_a_dialect_of_ones_own_is_stored_and_read_again():
    robots = parse("User-agent: *\nDisallow: /a:b\n", LITERAL)

    again = Robots.from_bytes(robots.to_bytes(), LITERAL)
    copied = pickle.loads(pickle.dumps(robots))  # noqa: S301

    assert again.dialect == copied.dialect == LITERAL
    assert not again.decide("x", "/a%3Ab")
    assert not copied.decide("x", "/a%3Ab")
    with pytest.raises(InvalidOption, match="pass that dialect"):
        Robots.from_bytes(robots.to_bytes())


def test_a_tidy_text_decides_alike_where_reserved_characters_equal_their_escapes():
    robots = parse("User-agent: *\nDisallow: /a%3ab%2F\nAllow: /c:d$\n", LITERAL)

    again = parse(robots.to_text(), LITERAL)

    for path in ("/a:b/", "/a%3Ab%2f", "/c%3Ad", "/c:d/"):
        assert again.decide("x", path).allowed is robots.decide("x", path).allowed


@pytest.mark.parametrize("specials", [True, False])
def test_a_last_dollar_may_also_mean_itself(specials: bool):
    both = replace(RFC9309, name="both", dollar_is_both=True, specials_equal_escapes=specials)
    rules = parse("User-agent: *\nDisallow: /a$\nAllow: /a$b\n", both).rules_for("x")

    verdicts = {path: rules.allows(path) for path in ("/a", "/a$", "/a$c", "/a$b", "/ab", "/b")}

    assert verdicts == {"/a": False, "/a$": False, "/a$c": False, "/a$b": True, "/ab": True, "/b": True}
    assert all(rules.decide(path).allowed is allowed for path, allowed in verdicts.items())
    assert [rule.line for rule in rules.matching("/a$b")] == [3, 2]


def test_without_wildcards_a_dollar_means_itself_alone():
    plain = replace(CLASSIC, name="plain", dollar_is_both=True)

    assert parse("User-agent: *\nDisallow: /a$\n", plain).decide("x", "/a")
