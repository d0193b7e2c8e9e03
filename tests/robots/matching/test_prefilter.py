"""Prefilter: what passes it is disallowed by nothing."""

from polite.robots.parse import parse
from polite.robots.rule_index import MOST_RULES, build_prefilter


def test_a_prefilter_holds_literal_starts_and_what_else_has_to_be_looked_for():
    made = build_prefilter(["/a", ("/", ("?sort=", "x"), False), ("/long/head", ("x",), False)], certain=True)

    assert made.starts == ("/a",)
    assert [text for text, _ in made.shapes] == ["?sort=", "/long/head"]
    assert made.certain


def test_files_on_both_sides_of_the_limit_answer_alike():
    for many in (MOST_RULES, MOST_RULES + 1):
        rules = parse("User-agent: *\n" + "".join(f"Disallow: /{n}/*x\n" for n in range(many))).rules_for("a")

        assert rules.allows("/0/y")
        assert not rules.allows("/0/x")
        assert not rules.allows(f"/{many - 1}/x")


def test_an_allow_may_overrule_what_the_prefilter_holds_back():
    rules = parse("User-agent: *\nDisallow: /a\nDisallow: /*b\nAllow: /a/c").rules_for("a")

    assert [rules.allows(path) for path in ("/a", "/a/c", "/a/c/b", "/b", "/c")] == [
        False,
        True,
        True,
        False,
        True,
    ]


def test_robots_txt_passes_a_prefilter_that_denies_everything():
    rules = parse("User-agent: *\nDisallow: /\nDisallow: /*txt").rules_for("a")

    assert rules.allows("/robots.txt")
    assert not rules.allows("/robots.txt2")
