"""Lines as the lint sees them: every line with a field, and its number."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, RFC9309
from polite.robots.lines import Field, Fields, fields_of, lines, octets, readable, readable_body
from polite.robots.lint.lint import lint
from polite.robots.parse import parse


def test_each_line_has_its_number_field_name_and_value():
    body = b"# head\nUser-Agent : * # all\n\nnonsense\n disallow:/a:b\n"

    found = [line[:4] for line in lines(body, RFC9309)]

    assert found == [
        (2, Field.USER_AGENT, "User-Agent", "*"),
        (4, Field.NONE, "", "nonsense"),
        (5, Field.DISALLOW, "disallow", "/a:b"),
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("disallow: /a", 11),
        ("disallow:/a # /a", 10),
        ("  disallow :\t/a  ", 14),
        ("дis: ü", 6),
        ("  nonsense # x", 3),
    ],
)
def test_the_column_is_where_the_value_starts(text: str, column: int):
    (line,) = lines(text.encode(), RFC9309)

    assert line.column == column


LONGER = [
    ("DisallowL /js/", Field.DISALLOW, "/js/"),
    ("Disallow\u00a0: /-/", Field.DISALLOW, "/-/"),
    ("disallow-all: /a b", Field.DISALLOW, "/a b"),
    ("Dissallowed: /a # b", Field.DISALLOW, "/a"),
    ("User-agent\u00a0: *", Field.USER_AGENT, "*"),
    ("Disallowed /a /b", Field.NONE, ""),
    ("xDisallow: /a", Field.UNKNOWN, "/a"),
    ("Allow; /a", Field.NONE, ""),
    ("Allowed: /a", Field.UNKNOWN, "/a"),
]


@pytest.mark.parametrize(("row", "field", "value"), LONGER)
def test_a_field_that_starts_with_disallow_or_user_agent_is_that_field(
    row: str, field: Field, value: str
) -> None:
    text = row.encode().decode("latin-1")

    assert fields_of(RFC9309).read(text) == (field, value)
    assert fields_of(CLASSIC).read(text)[0] in {Field.UNKNOWN, Field.NONE}
    if field in {Field.DISALLOW, Field.USER_AGENT}:
        assert fields_of(GOOGLE).read(text) == (field, value)


def test_a_dialect_of_values_without_colons_reads_the_longest_value() -> None:
    dialect = replace(RFC9309, name="both", colonless_values=True)

    assert fields_of(dialect).read("Disallow /http://a") == (Field.DISALLOW, "/http://a")
    assert fields_of(dialect).read("Disallow these: /a") == (Field.DISALLOW, "/a")
    assert fields_of(dialect).read("Disallow; /a") == (Field.DISALLOW, "/a")
    assert fields_of(dialect).read("Disallow-all:/a") == (Field.DISALLOW, "/a")


def test_octets_that_are_no_utf_8_come_back_as_they_were():
    stray = bytes(range(128, 256)) + b"\xed\xb2\x80\xed\xa0\x80"

    assert octets(stray.decode("utf-8", "surrogateescape")) == stray


@pytest.mark.parametrize("text", ["plain", "ü", "\U0001f600", "\ud800", "\x00\x7f"])
def test_octets_read_back_as_the_text_they_came_from(text: str):
    expected = "\\xed\\xa0\\x80" if text == "\ud800" else text

    assert readable(octets(text).decode("latin-1")) == expected


def test_the_spellings_that_are_remembered_are_bounded_in_number_and_length():
    fields = Fields(RFC9309)

    found = [fields[f"{' ' * blanks}disallow"] for blanks in range(3_000)]

    assert set(found) == {Field.DISALLOW}
    assert len(fields) <= 1_000
    assert max(map(len, fields)) <= 40
    assert len({fields[f"x{number}"] for number in range(3_500)}) == 1
    assert 0 < len(fields) <= 1_000
    assert fields["Disallow"] is Field.DISALLOW
    assert "Disallow" in fields, "spellings of hostile files do not keep out those of others"


COLONLESS = replace(
    RFC9309,
    name="colonless",
    misspellings=(*RFC9309.misspellings, ("request rate", "request-rate")),
    extends_fields=(),
    colonless_values=True,
)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("Sitemap https://example.com/s.xml", (Field.SITEMAP, "Sitemap", "https://example.com/s.xml")),
        ("visit-time 0200 0630 # UTC", (Field.VISIT_TIME, "visit-time", "0200 0630")),
        ("User Agent Harry\tPotter", (Field.USER_AGENT, "User Agent", "Harry\tPotter")),
        ("user agent", (Field.USER_AGENT, "user agent", "")),
        ("Disallow: /a: b", (Field.DISALLOW, "Disallow", "/a: b")),
        ("Allow /a", (Field.NONE, "", "Allow /a")),
        ("Allow /a:b", (Field.UNKNOWN, "Allow /a", "b")),
        ("sitemaps /x", (Field.NONE, "", "sitemaps /x")),
        ("x:y", (Field.UNKNOWN, "x", "y")),
    ],
)
def test_a_dialect_may_read_a_value_of_many_words_without_a_colon(row: str, expected: tuple[Field, str, str]):
    (line,) = lines(row.encode(), COLONLESS)
    whole = "" if line.field is Field.NONE else line.value

    assert line[1:4] == expected
    assert fields_of(COLONLESS).read(row) == (line.field, whole)


@pytest.mark.parametrize("row", ["Sitemap https://example.com/s.xml", "visit-time 0200 0630", "user agent"])
def test_other_dialects_ignore_such_a_line(row: str):
    for dialect in (RFC9309, replace(COLONLESS, colon_optional=False)):
        assert {line.field for line in lines(row.encode(), dialect)} <= {Field.NONE, Field.UNKNOWN}


def test_a_row_of_white_space_or_a_comment_has_no_field():
    assert [fields_of(COLONLESS).read(row) for row in ("", "  ", "# user agent x")] == [(Field.NONE, "")] * 3


def test_rules_and_groups_are_read_so_too():
    robots = parse(
        "user agent harry potter\ndisallow /a b:c\ndisallow /d e\nsitemap https://x.example/s\n", COLONLESS
    )

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/a b:c", "/d e"]
    assert robots.groups[0].agents == ("harry potter",)
    assert robots.sitemaps == ("https://x.example/s",)
    assert parse(robots.to_text(), COLONLESS).groups[0].rules == robots.groups[0].rules


def test_a_hostile_line_without_a_colon_is_read_in_linear_time():
    row = "user agent" + " " * 200_000 + "x"

    assert fields_of(COLONLESS).read(row) == (Field.USER_AGENT, "x")


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
@given(
    st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("user-agent:*\ndislow/a "), max_size=60
    )
)
def test_a_text_says_the_same_in_every_encoding(encoding: str, text: str):
    text = f"user-agent: *\n{text}"

    assert parse(marked(text, encoding)).groups == parse(text).groups
