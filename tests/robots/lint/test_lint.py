"""What the lint says, mistake by mistake; rows X1 to X8: tests/standards/documents. That nothing raises: tests/fuzz."""

import gzip
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import BY_NAME, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.lint.checks import Finding, shadowed_rules
from polite.robots.lint.lint import lint
from polite.robots.parse import parse
from tests.support import STRICT, examples

# No mistakes: values of other conventions, every form of a path and of a name.
HONEST = """\
User-agent: *
Disallow: /
Crawl-delay: 0.5 # seconds
Host: x
Clean-param: x
Sitemap: https://example.com/s.xml#b

User-agent: ExampleBot/1.0 (+https://example.com)
User-agent: a_b-c
User-agent: a_b-c
Disallow: *.js
Disallow: /caf%E9/*\U0001f600$
Disallow: /a# comment
Request-rate: 30/1m
Visit-time: 06:00-08:45
Content-Signal: /a Search=Yes, use=reference, other=maybe
Content-Usage: /a train-ai=n;x=1, whatever=y
License: HTTP://example.com/l
"""
FLAWLESS = "# ours\nUser-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nDisallow:\n\nSitemap: https://example.com/s.xml\n"
START = "User-agent: *\nDisallow: /x\n"


def codes(body: str | bytes, dialect: Dialect = RFC9309) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in lint(body, dialect)]


def of_line(line: str | bytes, dialect: Dialect = RFC9309) -> list[Finding]:
    octets = line.encode() if isinstance(line, str) else line
    found = lint(START.encode() + octets + b"\n", dialect)
    assert {each.line for each in found} <= {3}
    return found


def test_what_is_well_formed_is_no_mistake() -> None:
    assert lint(HONEST) == []
    assert [lint(FLAWLESS, dialect) for dialect in BY_NAME.values()] == [[]] * 5


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Crawl-delay: nan", "D1"),
        ("Disallow: fish/", "D5"),
        ("Request-rate: 1/0", "D16"),
        ("Request-rate: 1/5 9-17", "D16"),
        ("Visit-time:", "D17"),
        ("Visit-time: 0660-0700", "D17"),
        ("NOINDEX : /a", "D15"),
        ("License: /license.xml", "D20"),
        ("Sitemap: /s.xml", "D6"),
        ("Content-Usage: search=y, train-ai", "D19"),
        ("Content-Usage: Train-AI=n", "D19"),
        *(
            (f"Content-Signal: search=yes, {odd}", "D19")
            for odd in ("ai-train=n", "search", "use=all", "other=")
        ),
        *(
            (line, "X7")
            for line in ("dissallow: /", "DisallowL /js/", "Disallow\u00a0: /-/", "Disallowed /y")
        ),
    ],
)
def test_a_line_that_says_nothing_or_something_else_is_found(line: str, code: str):
    assert [each.code for each in of_line(line)] == [code]
    assert of_line(f"# {line}") == []


@pytest.mark.parametrize(
    ("line", "default", "strict"),
    [
        ("Disalow: /x", "polite reads it as Disallow", "polite ignores the line"),
        ("Alow: /x", "polite ignores the line", "polite ignores the line"),
        ("Disallow /x", "polite reads it as Disallow", "polite ignores the line"),
        ("Disallow /x /y", "polite ignores the line", "polite ignores the line"),
        *((f"Disallow: /a{c}b", f"polite reads it as %{ord(c):02X}", "polite reads it as it is") for c in " {|\\`^"),
    ],
)  # fmt: skip
def test_a_finding_says_what_polite_reads(line: str, default: str, strict: str):
    for dialect, reading in ((RFC9309, default), (STRICT, strict)):
        (found,) = (each for each in of_line(line, dialect) if each.code in {"X7", "D11"})
        assert reading in found.message


def test_a_second_group_for_a_crawler_is_found() -> None:
    body = "User-agent: a\nDisallow: /x\nUser-agent: b\nUser-agent: A/2\nDisallow: /y\nUser-agent: b\nDisallow:\n"
    assert codes(body) == codes(body, GOOGLE_2010) == [(4, "D8"), (6, "D8")]
    assert "both apply together" in lint(body)[0].message
    assert "only the first one applies" in lint(body, GOOGLE_2010)[0].message


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *((name, ["D9"]) for name in ("", "123", "*bot", "(compatible)", "_-_", "Mozilla/5.0 (X11)")),
        *(
            (names, ["D14"])
            for names in ("Googlebot, Bingbot", "a|b", "*, a", "Download Ninja, Teleport Pro")
        ),
        *((one, []) for one in ("Download Ninja", "ExampleBot/1.0 (+https://example.com, a; b)")),
        *((one, []) for one in ("HTTrack [NC,OR]", "WebReaper v7.3 - www,example.com/webreaper", "MJ12bot")),
    ],
)
def test_a_name_that_no_crawler_has_and_several_names_in_one_line_are_found(name: str, found: list[str]):
    assert [code for _, code in codes(f"User-agent: {name}\nDisallow: /x\n")] == found


@pytest.mark.parametrize("field", ["Crawl-delay: 1", "Visit-time: 0600-0800"])
def test_a_pace_between_user_agent_lines_is_found(field: str) -> None:
    assert codes(f"User-agent: a\n{field}\nUser-agent: b\nDisallow: /x\n") == [(2, "D10")]
    assert lint(f"User-agent: a\n{field}\nDisallow: /x\n\nUser-agent: b\nDisallow: /x\n") == []


@pytest.mark.parametrize("field", ["Disallow", "Allow"])
def test_a_path_in_latin_1_is_found_with_its_escape_and_that_of_utf_8(field: str):
    (found,) = of_line(f"{field}: /".encode() + b"caf\xe9/")
    assert found.code == "D13"
    assert "read as %E9, which no URL in UTF-8 has" in found.message
    assert "'é' is %C3%A9 in UTF-8" in found.hint
    (other,) = of_line(f"{field}: /".encode() + b"\x93quoted\x94")
    assert other.code == "D13"
    assert " is %" not in other.hint, "no letter of Latin-1"


@pytest.mark.parametrize(
    ("path", "read"),
    [("/a#b", "/a"), ("/#!/account", "/"), ("/a#b c", "/a"), ("/a #x#y", None), ("/a#", None), ("#x", None)],
)
def test_a_hash_within_a_path_is_found_and_a_comment_is_none(path: str, read: str | None):
    found = of_line(f"Disallow: {path}")
    assert [each.code for each in found] == ["D18"] * (read is not None)
    for each in found:
        assert f"is read as {read!r}" in each.message
        assert path.split(maxsplit=1)[0] in each.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (gzip.compress(START.encode()), "gzip data"),
        (b"%PDF-1.7\n" + START.encode(), "a PDF document"),
        (b"\x89PNG\r\n\x1a\n" + START.encode(), "a PNG image"),
        (random.Random(1).randbytes(600), "binary data"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 300 + bytes(range(32)), "binary data"),
        (b"\0" * 600, "binary data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_text_is_that_and_nothing_else(body: bytes, kind: str):
    (found,) = lint(body)
    assert (found.line, found.code) == (1, "D12")
    assert f"the file is {kind}, not text" in found.message


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("\n<!doctype html>\n<html><p style='color: red'>Hello: world</p></html>", [(2, "D4")]),
        ("\ufeff<html>\nLicense: none\nNoindex: /\n", [(1, "D2"), (1, "D4")]),
        (f"# <html>\n{START}", []),
        (b"# " + ("文字" * 50).encode("iso-2022-jp") + b"\0\1", []),
        (b"# " + ("größer" * 20).encode("latin-1"), []),
        (f"< p\n{START}", []),
        ("User-agent: *\nDisallow: /<html>\n", [(2, "D11")]),
    ],
)
def test_html_is_no_typing_error_and_a_bracket_no_page(body: str, found: list[tuple[int, str]]) -> None:
    assert codes(body) == found


def test_a_file_full_of_mistakes_is_reported_in_part_and_a_very_long_field_is_not_looked_up() -> None:
    assert len(lint("Disallow: /a\n" * 20_000)) == 1_000
    assert of_line("dizallow" * 10 + ": /y") == []


# D7: rules that never decide, which rule wins instead, and where nobody looks.

BOTH = replace(RFC9309, name="both", dollar_is_both=True)
INDEX = ["Allow: /a/index.html", "Allow: /*a/index.html"]
NO_SLASH = ["Disallow: fish", "Disallow: /fish", "Disallow: fish"]


def found(body: str, dialect: Dialect = RFC9309) -> list[tuple[int, int]]:
    return [(idle.line, winner.line) for idle, winner in shadowed_rules(parse(body, dialect).groups, dialect)]


@pytest.mark.parametrize(
    ("rules", "dialect", "pairs"),
    [
        (["Disallow: /a", "Disallow: /a"], RFC9309, [(3, 2)]),
        (["Allow: /a", "Disallow: /a"], RFC9309, [(3, 2)]),
        (["Disallow: /x/b", "Allow: /*x*/b"], RFC9309, [(2, 3)]),
        (["Disallow: /a", "Disallow: /a*"], RFC9309, [(2, 3)]),
        (["Disallow: /%C3%BC", "Allow: /ü"], RFC9309, [(2, 3)]),
        (["Disallow: /x$", "Allow: /*x"], RFC9309, [(2, 3)]),
        (["Disallow: /x$", "Allow: /*x"], BOTH, []),
        (["Disallow: /x", "Allow: /*x$"], RFC9309, []),
        (["Disallow: /", "Disallow: /a", "Allow: /a/b"], RFC9309, []),
        (["Disallow: /*b", "Disallow: /a*"], RFC9309, []),
        # An index page stands for its folder, too.
        (INDEX, RFC9309, [(2, 3)]),
        (INDEX, GOOGLE, []),
        (NO_SLASH, GOOGLE_2010, [(3, 2), (4, 2)]),
        (NO_SLASH, RFC9309, []),
    ],
)
def test_a_rule_that_never_decides_is_found_with_the_one_that_does(rules, dialect, pairs):
    body = "\n".join(["User-agent: *", *rules, "User-agent: b", "Disallow: /a"])
    assert found(body, dialect) == pairs
    assert [each.line for each in lint(body, dialect) if each.code == "D7"] == [idle for idle, _ in pairs]


@examples(300, fast=30)
@given(
    st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), st.text("/ab*$", max_size=6)), max_size=6),
    st.sampled_from([*BY_NAME.values()]),
    st.lists(st.text("/ab$x", max_size=6).map("/{}".format), max_size=20),
)
def test_a_rule_that_is_said_never_to_decide_never_does(rules, dialect, asked):
    body = "\n".join(["User-agent: *", *(f"{field}: {path}" for field, path in rules)])
    idle = {idle for idle, _ in found(body, dialect)}
    bound = parse(body, dialect).rules_for("x")
    assert idle.isdisjoint({decision.rule.line for path in asked if (decision := bound.decide(path)).rule})
