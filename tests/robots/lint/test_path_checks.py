"""What the lint says about the encoding of a rule's path, and about a # in it."""

import pytest

from polite.robots.lint.checks import Finding
from polite.robots.lint.lint import lint


def findings(rule: bytes | str) -> list[Finding]:
    octets = rule.encode() if isinstance(rule, str) else rule
    return lint(b"User-agent: *\n" + octets + b"\n")


@pytest.mark.parametrize("field", [b"Disallow", b"Allow"])
def test_a_path_in_latin_1_is_found_with_its_escape_and_that_of_utf_8(field: bytes):
    found = [each for each in findings(field + b": /caf\xe9/\nDisallow: /x") if each.code == "D13"]

    assert [each.line for each in found] == [2]
    assert "read as %E9, which no URL in UTF-8 has" in found[0].message
    assert "'é' is %C3%A9 in UTF-8" in found[0].hint


def test_an_octet_that_is_no_letter_of_latin_1_is_not_named_as_one():
    (found,) = findings(b"Disallow: /\x93quoted\x94")

    assert found.code == "D13"
    assert " is %" not in found.hint


def test_the_octet_that_is_named_is_the_first_that_is_not_utf_8():
    (found,) = findings("Disallow: /ü/".encode() + b"\xff\xe9/")

    assert "%FF" in found.message


@pytest.mark.parametrize("path", ["/café/", "/caf%C3%A9/", "/caf%E9/", "/文", "/*\U0001f600$"])
def test_a_path_in_utf_8_or_with_escapes_is_none(path: str):
    assert findings(f"Disallow: {path}") == []


def test_a_comment_in_latin_1_is_no_mistake():
    assert findings(b"Disallow: /x # caf\xe9\n# \xe9\xe8") == []


@pytest.mark.parametrize(
    ("path", "read"), [("/a#b", "/a"), ("/#!/account", "/"), ("/a#b c", "/a"), ("/a #x#y", None)]
)
def test_a_hash_within_a_path_is_found(path: str, read: str | None):
    found = findings(f"Disallow: {path}")

    assert [each.code for each in found] == ["D18"] * (read is not None)
    if read is not None:
        assert found[0].line == 2
        assert f"is read as {read!r}" in found[0].message
        assert path.split(maxsplit=1)[0] in found[0].message


@pytest.mark.parametrize(
    "rule",
    [
        "Disallow: /a # comment",
        "Disallow: /a# comment",
        "Disallow: /a\t#comment",
        "Disallow: /a#",
        "Disallow: #comment",
        "Disallow:#comment",
        "Disallow: /a%23b",
        "#Disallow: /a#b\nDisallow: /x",
        "Disallow: /x\nSitemap: https://example.com/s.xml#b",
    ],
)
def test_a_comment_is_none(rule: str):
    assert findings(rule) == []


def test_a_hash_without_its_colon_is_found_too():
    assert [each.code for each in findings("Disallow /a#b")] == ["D18", "X7"]
