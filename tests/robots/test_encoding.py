"""Encodings: a byte order mark of UTF-16 or UTF-32 is obeyed, whatever stands behind it, and however it is cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import GOOGLE, RFC9309
from polite.robots.lines import readable_body
from polite.robots.lint.lint import lint
from polite.robots.parse import parse

WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
wide = pytest.mark.parametrize("encoding", WIDE)


def marked(text: str, encoding: str) -> bytes:
    return f"\ufeff{text}".encode(encoding)


@wide
def test_a_marked_file_is_read_with_its_lines_where_they_stand(encoding: str):
    body = marked("# ours\r\nUser-agent: *\r\n\r\nDisallow: /ü\rAllow: /üb\n", encoding)

    decision = parse(body).decide("ExampleBot", "/%C3%BCa")

    assert str(decision) == "disallowed by Disallow: /ü (line 4)"
    assert parse(body).decide("ExampleBot", "/üb")
    assert parse(body).explain("ExampleBot", "/ü").matches[0].column == 11


@wide
def test_without_a_mark_and_where_the_dialect_says_so_nothing_is_read(encoding: str):
    text = "User-agent: *\nDisallow: /\n"

    assert parse(text.encode(encoding)).decide("ExampleBot", "/")
    assert parse(marked(text, encoding), GOOGLE).decide("ExampleBot", "/")
    assert parse(marked(text, encoding), replace(RFC9309, reads_utf16=False)).decide("ExampleBot", "/")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"])
@pytest.mark.parametrize("odd", [b"", b"\0", b"# \0\n"])
def test_what_a_mark_does_not_fit_is_read_as_it_stands(mark: bytes, odd: bytes):
    body = mark + b"\n" + odd + b"\nUser-agent: *\nDisallow: /a\n"

    assert not parse(body).decide("ExampleBot", "/a")


@wide
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_rule_cut_in_the_middle_of_a_character_forbids_more_and_never_allows_more(encoding: str, lost: int):
    head = "User-agent: *\nDisallow: /\nAllow: /a\n"

    allow = parse(marked(f"{head}Allow: /b\U0001f41f", encoding)[:-lost])
    forbid = parse(marked(f"{head}Disallow: /a/b\U0001f41f", encoding)[:-lost])

    assert allow.decide("ExampleBot", "/a")
    assert not allow.decide("ExampleBot", "/b")
    assert not forbid.decide("ExampleBot", "/a/b")


@wide
def test_of_a_large_file_the_octets_that_count_are_bounded_before_and_after(encoding: str):
    rules = "".join(f"Disallow: /漢字漢字{number}\n" for number in range(60_000))
    body = marked(f"User-agent: *\n{rules}", encoding)

    octets, cut = readable_body(body, RFC9309)

    assert cut
    assert len(octets) <= RFC9309.max_bytes
    assert len(parse(body).rules_for("ExampleBot")) > 5_000
    assert "X8" in {finding.code for finding in lint(body)}


@wide
def test_a_file_that_the_limit_cuts_keeps_no_last_allow(encoding: str):
    body = marked("User-agent: *\nDisallow: /\nAllow: /abc\n", encoding)
    short = replace(RFC9309, max_bytes=len(body) - 3 * len("\n".encode(encoding)))

    assert not parse(body, short).decide("ExampleBot", "/abc")
    assert parse(body).decide("ExampleBot", "/abc")


@wide
@given(
    st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("user-agent:*\ndislow/a "), max_size=60
    )
)
def test_a_text_says_the_same_in_every_encoding(encoding: str, text: str):
    text = f"user-agent: *\n{text}"

    assert parse(marked(text, encoding)).groups == parse(text).groups
