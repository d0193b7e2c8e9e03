"""What the lint says about a file that is no text, and about one that is."""

import gzip
import random

import pytest

from polite.robots.lint.lint import lint

TEXT = b"User-agent: *\nDisallow: /private/\n"


def codes(body: bytes) -> list[str]:
    return [finding.code for finding in lint(body)]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (gzip.compress(TEXT), "gzip data"),
        (b"\x28\xb5\x2f\xfd" + TEXT, "Zstandard data"),
        (b"PK\x03\x04\x14\x00" + TEXT, "a ZIP archive"),
        (b"%PDF-1.7\n" + TEXT, "a PDF document"),
        (b"\x89PNG\r\n\x1a\n" + TEXT, "a PNG image"),
        (b"\xff\xd8\xff\xe0" + TEXT, "a JPEG image"),
        (b"GIF89a" + TEXT, "a GIF image"),
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
        b"",
        "größer, 文字, 😀".encode(),
        "größer".encode("latin-1") * 20,
        "文字".encode("shift-jis") * 50,
        "文字".encode("iso-2022-jp") * 50,
        "правила".encode("koi8-r") * 50,
        "文字".encode("gb18030") * 50,
        b"\x00\x01\x02",
        b"\t\v\f" * 50,
    ],
)
def test_text_in_any_encoding_is_none(comment: bytes):
    assert codes(TEXT + b"# " + comment + b"\n") == []


def test_an_empty_file_is_none():
    assert codes(b"") == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-16"])
def test_wide_characters_are_text(encoding: str):
    assert codes(TEXT.decode().encode(encoding)) == ["D3"]
