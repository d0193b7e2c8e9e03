"""Whether a path matches, and which rule wins: rows M1 to M7 and P1 to P4, with the documents' tables and situations."""

from itertools import permutations

import pytest

from polite.robots.decision import Decision
from polite.robots.dialect import CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import combining_dialects, dialects, every_dialect, newer_dialects


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
    "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything".split(),
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


# P: which rule wins.


def decide(rules: list[str], path: str, dialect: Dialect) -> Decision:
    return parse("\n".join(["user-agent: *", *rules]), dialect).decide("ExampleBot", path)


@newer_dialects
@pytest.mark.parametrize("order", list(permutations(["disallow: /", "allow: /a", "disallow: /a/b"])))
def test_p1_the_longest_path_wins_whatever_the_order(dialect: Dialect, order: tuple[str, ...]):
    rules = list(order)

    assert not decide(rules, "/b", dialect)
    assert decide(rules, "/a/c", dialect)
    assert not decide(rules, "/a/b", dialect)


@newer_dialects
def test_p1_length_is_counted_in_octets_of_the_encoded_path(dialect: Dialect):
    rules = ["disallow: /ü", "allow: /*x-"]

    decision = decide(rules, "/üx-", dialect)

    assert not decision
    assert [rule.pattern for rule in decision.overruled] == ["/*x-"]


def test_p1_in_rfc9309_an_escape_of_a_plain_letter_counts_as_the_letter():
    rules = ["disallow: /%62%61%72", "allow: /*bar"]

    assert decide(rules, "/bar", RFC9309)


@newer_dialects
@pytest.mark.parametrize("rules", [["disallow: /a", "allow: /a"], ["allow: /a", "disallow: /a"]])
def test_p2_at_equal_length_the_least_restrictive_rule_wins(dialect: Dialect, rules: list[str]):
    decision = decide(rules, "/a", dialect)

    assert decision.allowed
    assert not decision.undefined
    assert [rule.allows for rule in decision.overruled] == [False]


@newer_dialects
def test_p2_at_equal_length_allow_wins_against_a_wildcard_too(dialect: Dialect):
    decision = decide(["disallow: /*b", "allow: /ab"], "/ab", dialect)

    assert decision.allowed
    assert decision.undefined is (dialect is GOOGLE_2010)


SITUATIONS = [
    ("/page", "/p", "/", True),
    ("/folder/page", "/folder/", "/folder", True),
    ("/folder/page", "/folder", "/folder", True),
    ("/page.htm", "/page", "/*.htm", False),
    ("/", "/$", "/", True),
    ("/page.htm", "/$", "/", False),
]


@newer_dialects
@pytest.mark.parametrize(("path", "allow", "disallow", "verdict"), SITUATIONS)
def test_p3_the_documents_situations(dialect: Dialect, path: str, allow: str, disallow: str, verdict: bool):
    decision = decide([f"allow: {allow}", f"disallow: {disallow}"], f"http://example.com{path}", dialect)

    called_undefined = disallow == "/*.htm" and dialect in (GOOGLE_2010, GOOGLE_2019)

    assert decision.allowed is verdict
    assert decision.undefined is called_undefined


@dialects(GOOGLE_2010, GOOGLE_2019)
def test_p3_the_undefined_situation_is_named_with_both_rules(dialect: Dialect):
    decision = decide(["allow: /page", "disallow: /*.htm"], "/page.htm", dialect)

    assert (
        str(decision)
        == "disallowed by Disallow: /*.htm (line 3), whose conflict with Allow: /page (line 2) is undefined"
    )


@pytest.mark.parametrize(
    ("rules", "undefined"),
    [
        (["disallow: /*.htm"], False),
        (["disallow: /page", "disallow: /*.htm"], False),
        (["allow: /*e.htm", "disallow: /*.htm"], True),
        (["allow: /page", "disallow: /page.", "disallow: /p*e.htm"], False),
        (["allow: /page.htm", "disallow: /*.htm"], True),
        (["allow: /page*", "disallow: /"], False),
        (["allow: /page", "disallow: /*.doc"], False),
    ],
)
def test_p3_a_decision_by_the_position_of_a_wildcard_rule_alone_is_undefined(rules, undefined):
    assert decide(rules, "/page.htm", GOOGLE_2010).undefined is undefined


@pytest.mark.parametrize("line", ["allow: /", "allow: /a", "Allow: /a/b"])
def test_p4_classic_has_no_allow(line: str):
    decision = decide([line, "disallow: /a"], "/a/b", CLASSIC)

    assert not decision
    assert decision.overruled == ()


def test_p4_in_classic_any_disallow_that_matches_forbids_and_an_allow_ends_no_agents():
    robots = parse("user-agent: a\nallow: /\nuser-agent: b\ndisallow: /a\ndisallow: /a/b", CLASSIC)

    assert not robots.decide("a", "/a/c")
    assert robots.decide("a", "/b")
