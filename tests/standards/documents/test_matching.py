"""Whether a path matches: rows M1 to M7 of the digest, with the documents' table row by row."""

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE_2010, GOOGLE_2019, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import combining_dialects, every_dialect, newer_dialects


def forbids(rule: str, path: str, dialect: Dialect) -> bool:
    return not parse(f"user-agent: *\ndisallow: {rule}", dialect).decide("ExampleBot", path)


@every_dialect
@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/a?b=c", "/a?b=cd", True),
        ("/a", "/a?b=c", True),
        ("/a", "/b/a", False),
        ("/a?b=c", "/a", False),
        ("/a?b", "https://example.com/a?b=c#d", True),
        ("/a?b", "https://example.com/?/a?b", False),
    ],
)
def test_m1_a_rule_is_compared_with_the_start_of_path_and_query(dialect, rule: str, path: str, matches: bool):
    assert forbids(rule, path, dialect) is matches


@every_dialect
@pytest.mark.parametrize("rule", ["", " ", "# all is allowed"])
def test_m2_an_empty_path_makes_the_rule_a_no_op(dialect: Dialect, rule: str):
    assert not forbids(rule, "/", dialect)


@every_dialect
def test_m2_an_empty_allow_decides_nothing_either(dialect: Dialect):
    decision = parse("user-agent: *\nallow:\ndisallow: /a", dialect).decide("ExampleBot", "/a")

    assert not decision
    assert decision.overruled == ()


@pytest.mark.parametrize("rule", ["fish", "fish/", "*.php", "$", "?fish"])
def test_m3_google_2010_supplies_a_missing_slash(rule: str):
    robots = parse(f"user-agent: *\ndisallow: {rule}", GOOGLE_2010)
    slashed = parse(f"user-agent: *\ndisallow: /{rule}", GOOGLE_2010)

    for path in ("/", "/fish", "/fish/", "/fish/a", "/a.php", "/?fish", "/a/fish"):
        assert robots.decide("x", path).allowed is slashed.decide("x", path).allowed, path


@combining_dialects  # all but google-2010
@pytest.mark.parametrize("rule", ["fish", "fish/", "$", "?fish", "http://example.com/"])
def test_m3_elsewhere_a_path_without_its_slash_matches_nothing(dialect: Dialect, rule: str):
    for path in ("/", "/fish", "/fish/", "/?fish", "/http://example.com/"):
        assert not forbids(rule, path, dialect), path


@newer_dialects
@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/a*c", "/ac", True),
        ("/a*c", "/abbc", True),
        ("/a*c", "/ab", False),
        ("/a*$", "/abc", True),
        ("*", "/", True),
        ("*/b", "/a/b", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a$b", "/a$b", True),
        ("/a$b", "/a", False),
        ("/a*b$", "/a/b/b", True),
        ("/a*b$", "/a/b/c", False),
        ("/ab*b$", "/ab", False),
        ("/*a*a*a", "/aa", False),
        ("/a$$", "/a$", True),
    ],
)
def test_m4_a_star_is_any_run_and_a_last_dollar_pins_the_end(dialect, rule: str, path: str, matches: bool):
    assert forbids(rule, path, dialect) is matches


@pytest.mark.parametrize("rule", ["*", "*.doc", "/dir/*.doc", "/a$"])
def test_m4_in_classic_wildcards_forbid_nothing(rule: str):
    for path in ("/", "/a", "/a.doc", "/dir/a.doc", "/dir/"):
        assert not forbids(rule, path, CLASSIC), path


@newer_dialects
@pytest.mark.parametrize("rule", ["/ツ", "/%E3%83%84", "/%e3%83%84"])
@pytest.mark.parametrize("path", ["/ツ", "/%E3%83%84", "https://example.com/ツ"])
def test_m5_utf_8_equals_its_escapes_in_rule_and_url(dialect: Dialect, rule: str, path: str):
    assert forbids(rule, path, dialect)
    assert not forbids(rule, "/%E3%83%83", dialect)


@newer_dialects
def test_m5_a_rule_in_another_encoding_matches_its_own_octets_only(dialect: Dialect):
    robots = parse("user-agent: *\ndisallow: /é".encode("latin-1"), dialect)

    assert not robots.decide("x", "/%E9")
    assert robots.decide("x", "/é")


FISH = (
    [
        "/fish",
        "/fish.html",
        "/fish/salmon.html",
        "/fishheads",
        "/fishheads/yummy.html",
        "/fish.php?id=anything",
    ],
    ["/Fish.asp", "/catfish", "/?id=fish"],
)
FOLDER = (["/fish/", "/fish/?id=anything", "/fish/salmon.htm"], ["/fish", "/fish.html", "/Fish/Salmon.asp"])
TABLE = {
    "/": (["/", "/a", "/a/b?c", "/fish"], []),
    "/*": (["/", "/a", "/a/b?c", "/fish"], []),
    "/fish": FISH,
    "/fish*": FISH,
    "/fish/": FOLDER,
    "/*.php": (
        [
            "/filename.php",
            "/folder/filename.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/filename.php/",
        ],
        ["/", "/windows.PHP"],
    ),
    "/*.php$": (
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    "/fish*.php": (["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP"]),
}
ROWS = [(rule, path, True) for rule, (yes, _) in TABLE.items() for path in yes]
ROWS += [(rule, path, False) for rule, (_, no) in TABLE.items() for path in no]


@newer_dialects
@pytest.mark.parametrize(("rule", "path", "matches"), ROWS)
def test_m6_the_documents_table(dialect: Dialect, rule: str, path: str, matches: bool):
    assert forbids(rule, path, dialect) is matches


@pytest.mark.parametrize(
    ("path", "matches"), [*((path, True) for path in FOLDER[0]), *((path, False) for path in FOLDER[1])]
)
def test_m6_a_folder_without_its_first_slash_is_that_folder_in_google_2010(path: str, matches: bool):
    assert forbids("fish/", path, GOOGLE_2010) is matches
    assert not forbids("fish/", path, GOOGLE_2019)


@pytest.mark.parametrize(
    ("path", "in_folder"),
    [
        ("/dir/", True),
        ("/dir/index.html", True),
        ("/dir.html", False),
        ("/directory.html", False),
        ("/dir", False),
    ],
)
def test_m7_classic_forbids_whatever_starts_like_the_rule_and_a_folder_by_its_last_slash(path, in_folder):
    assert forbids("/dir", path, CLASSIC)
    assert forbids("/dir/", path, CLASSIC) is in_folder
