"""The five dialects by name, and what each field of a dialect of one's own changes."""

from dataclasses import replace

import pytest

from polite.errors import InvalidOption
from polite.robots.dialect import BY_NAME, GOOGLE, RFC9309, dialect
from polite.robots.parse import parse


def test_google_ends_a_line_at_a_nul_and_after_so_many_octets():
    line = "disallow: /" + "a" * 20_000
    assert not parse(f"user-agent: *\n{line}", GOOGLE).decide("x", "/" + "a" * 16_652)
    assert parse(f"user-agent: *\n{line}", GOOGLE).decide("x", "/" + "a" * 16_651)
    assert not parse("user-agent: *\ndisallow: /a\0b", GOOGLE).decide("x", "/ac")
    assert parse("user-agent: *\ndisallow: /a\0b", RFC9309).decide("x", "/ac")


@pytest.mark.parametrize("page", ["/a/index.html", "/a/index.htm", "/a/index.htmx"])
def test_google_takes_an_allowed_index_page_for_its_folder(page: str):
    body = f"user-agent: *\ndisallow: /\nallow: {page}"
    assert parse(body, GOOGLE).decide("x", "/a/").rule.pattern == page
    assert not parse(body, GOOGLE).decide("x", "/a/b")
    assert not parse(body, RFC9309).decide("x", "/a/")


@pytest.mark.parametrize(
    ("rule", "path"), [("/%62", "/b"), ("/%2A", "/*"), ("/%24", "/$"), ("/b", "/%62"), ("/%aa", "/%aa")]
)
def test_google_decodes_nothing_and_takes_a_url_as_it_is(rule: str, path: str):
    body = f"user-agent: *\ndisallow: {rule}"
    assert parse(body, GOOGLE).decide("x", path)
    assert not parse(body, RFC9309).decide("x", path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("max_bytes", 1.5), ("max_line_bytes", 0), ("has_allow", "no"), ("wildcard_conflict", True)),
        *(("denied_statuses", value) for value in ([404], frozenset({500}))),
        *(("misspellings", value) for value in ("abc", None, (("Alow", "allow"),), (("alow", "alow"),))),
        ("extends_fields", ("nonsense",)),
    ],
)
def test_what_cannot_be_a_dialect_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"Dialect: {field} must be"):
        replace(RFC9309, **{field: value})


@pytest.mark.parametrize("specials", [True, False])
def test_a_last_dollar_may_also_mean_itself(specials: bool):
    both = replace(RFC9309, name="both", dollar_is_both=True, specials_equal_escapes=specials)
    rules = parse("User-agent: *\nDisallow: /a$\nAllow: /a$b\n", both).rules_for("x")
    verdicts = {path: rules.allows(path) for path in ("/a", "/a$", "/a$c", "/a$b", "/ab", "/b")}
    assert verdicts == {"/a": False, "/a$": False, "/a$c": False, "/a$b": True, "/ab": True, "/b": True}
    assert all(rules.decide(path).allowed is allowed for path, allowed in verdicts.items())
    assert [rule.line for rule in rules.matching("/a$b")] == [3, 2]


def test_each_dialect_is_found_by_its_name():
    assert [dialect(name).name for name in BY_NAME] == list(BY_NAME)
    with pytest.raises(InvalidOption, match="classic, google-2010, google-2019, rfc9309, google"):
        dialect("google-2020")
