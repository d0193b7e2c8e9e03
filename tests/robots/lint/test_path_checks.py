"""What the lint says about the encoding of a rule's path, and about a # in it."""

import gzip
import random

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
        "Disallow: /a# comment",
        "Disallow: /a#",
        "Disallow: #comment",
        "Disallow: /x\nSitemap: https://example.com/s.xml#b",
    ],
)
def test_a_comment_is_none(rule: str):
    assert findings(rule) == []


TEXT = b"User-agent: *\nDisallow: /private/\n"


def codes(body: bytes) -> list[str]:
    return [finding.code for finding in lint(body)]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (gzip.compress(TEXT), "gzip data"),
        (b"%PDF-1.7\n" + TEXT, "a PDF document"),
        (b"\x89PNG\r\n\x1a\n" + TEXT, "a PNG image"),
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
    "comment",
    [
        "größer".encode("latin-1") * 20,
        "文字".encode("shift-jis") * 50,
        "文字".encode("iso-2022-jp") * 50,
        b"\x00\x01\x02",
    ],
)
def test_text_in_any_encoding_is_none(comment: bytes):
    assert codes(TEXT + b"# " + comment + b"\n") == []
