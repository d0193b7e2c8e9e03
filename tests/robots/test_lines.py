"""Lines: their numbers, fields and values, and the encodings of a file; and to_text, a tidy file that decides as its original."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import BY_NAME, CLASSIC, GOOGLE, RFC9309, Dialect
from polite.robots.lines import Field, Fields, fields_of, lines, readable_body
from polite.robots.parse import Robots, parse
from tests.standards.dialects import corpus, some_or_all


def test_each_line_has_its_number_field_name_and_value():
    body = b"# head\nUser-Agent : * # all\n\nnonsense\n disallow:/a:b\n"
    assert [line[:4] for line in lines(body, RFC9309)] == [
        (2, Field.USER_AGENT, "User-Agent", "*"),
        (4, Field.NONE, "", "nonsense"),
        (5, Field.DISALLOW, "disallow", "/a:b"),
    ]


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ("DisallowL /js/", Field.DISALLOW, "/js/"),
        ("Disallow\u00a0: /-/", Field.DISALLOW, "/-/"),
        ("disallow-all: /a b", Field.DISALLOW, "/a b"),
        ("Dissallowed: /a # b", Field.DISALLOW, "/a"),
        ("User-agent\u00a0: *", Field.USER_AGENT, "*"),
        ("Disallowed /a /b", Field.NONE, ""),
        ("xDisallow: /a", Field.UNKNOWN, "/a"),
        ("Allow; /a", Field.NONE, ""),
        ("Allowed: /a", Field.UNKNOWN, "/a"),
    ],
)
def test_a_field_that_starts_with_disallow_or_user_agent_is_that_field(row: str, field: Field, value: str):
    text = row.encode().decode("latin-1")
    assert fields_of(RFC9309).read(text) == (field, value)
    assert fields_of(CLASSIC).read(text)[0] in {Field.UNKNOWN, Field.NONE}
    if field in {Field.DISALLOW, Field.USER_AGENT}:
        assert fields_of(GOOGLE).read(text) == (field, value)


def test_the_spellings_that_are_remembered_are_bounded_in_number_and_length():
    fields = Fields(RFC9309)

    assert {fields[f"{' ' * blanks}disallow"] for blanks in range(3_000)} == {Field.DISALLOW}
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
        ("user agent" + " " * 200_000 + "x", (Field.USER_AGENT, "user agent", "x")),
        ("Disallow: /a: b", (Field.DISALLOW, "Disallow", "/a: b")),
        ("Allow /a", (Field.NONE, "", "Allow /a")),
        ("Allow /a:b", (Field.UNKNOWN, "Allow /a", "b")),
        ("sitemaps /x", (Field.NONE, "", "sitemaps /x")),
        ("x:y", (Field.UNKNOWN, "x", "y")),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_dialect_may_read_a_value_of_many_words_without_a_colon(row: str, expected: tuple[Field, str, str]):
    (line,) = lines(row.encode(), COLONLESS)
    assert line[1:4] == expected
    assert fields_of(COLONLESS).read(row) == (line.field, "" if line.field is Field.NONE else line.value)
    if ":" not in row.partition("//")[0]:
        for dialect in (RFC9309, replace(COLONLESS, colon_optional=False)):
            assert fields_of(dialect).read(row)[0] in {Field.NONE, Field.UNKNOWN}


WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
wide = pytest.mark.parametrize("encoding", WIDE)


def marked(text: str, encoding: str) -> bytes:
    return f"\ufeff{text}".encode(encoding)


@wide
def test_a_marked_file_is_read_with_its_lines_where_they_stand(encoding: str):
    text = "# ours\r\nUser-agent: *\r\n\r\nDisallow: /ü\rAllow: /üb\n"
    body = marked(text, encoding)

    assert str(parse(body).decide("ExampleBot", "/%C3%BCa")) == "disallowed by Disallow: /ü (line 4)"
    assert parse(body).decide("ExampleBot", "/üb")
    assert parse(body).explain("ExampleBot", "/ü").matches[0].column == 11
    # Without the mark, and where the dialect says so, nothing is read.
    assert parse(text.encode(encoding)).decide("ExampleBot", "/ü")
    assert parse(body, GOOGLE).decide("ExampleBot", "/ü")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"])
@pytest.mark.parametrize("odd", [b"", b"\0", b"# \0\n"])
def test_what_a_mark_does_not_fit_is_read_as_it_stands(mark: bytes, odd: bytes):
    assert not parse(mark + b"\n" + odd + b"\nUser-agent: *\nDisallow: /a\n").decide("ExampleBot", "/a")


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
    kept, cut = readable_body(marked(f"User-agent: *\n{rules}", encoding), RFC9309)
    assert cut
    assert 150_000 < len(kept) <= RFC9309.max_bytes


@wide
@given(
    st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("user-agent:*\ndislow/a "), max_size=60
    )
)
def test_a_text_says_the_same_in_every_encoding(encoding: str, text: str):
    text = f"user-agent: *\n{text}"
    assert parse(marked(text, encoding)).groups == parse(text).groups


NAMED = list(BY_NAME.values())


def again(robots: Robots) -> Robots:
    return parse(robots.to_text(), robots.dialect)


def ruled(robots: Robots) -> list[object]:
    """All that a file says, but for its lines and for fields that its dialect does not know."""
    groups = [
        (group.agents, [(rule.allows, rule.pattern) for rule in group.rules], group.paces)
        for group in robots.groups
    ]
    return [groups, robots.sitemaps, robots.host]


UNTIDY = b"""\xef\xbb\xbf# ours\r\n<p>\r
USER-AGENT:*\rdisallow :/a # not b
Crawl-delay:  2
user-agent: b

allow:
X-Odd: 1
Sitemap: https://example.com/s
Host: example.com"""
TIDY = """\
User-agent: *
Disallow: /a
Crawl-delay: 2

User-agent: b
Allow:
X-Odd: 1
Sitemap: https://example.com/s
Host: example.com
"""


@pytest.mark.parametrize(
    ("body", "dialect", "text"),
    [
        (UNTIDY, RFC9309, TIDY),
        (b"User-agent:\xff\nUser-agent:*\nDisallow:/\xff\xc3\xbc", RFC9309, "User-agent: \\xff\nUser-agent: *\nDisallow: /%FFü\n"),
        # Here a blank line alone parts groups.
        (b"user-agent: a\n\n\nuser-agent: b\ndisallow: /", CLASSIC, "User-agent: a\n\nUser-agent: b\nDisallow: /\n"),
    ],
    ids=["tidied", "octets", "blank line"],
)  # fmt: skip
def test_what_counts_is_kept_and_tidied(body: bytes, dialect: Dialect, text: str):
    robots = parse(body, dialect)
    assert robots.to_text() == text
    for agent, path in (("a", "/x"), ("b", "/x"), ("x", "/%FF%C3%BC")):
        assert again(robots).decide(agent, path).allowed is robots.decide(agent, path).allowed


@some_or_all
@pytest.mark.parametrize("dialect", NAMED, ids=lambda dialect: dialect.name)
def test_the_text_of_a_real_file_says_what_the_file_says(dialect: Dialect, files: int):
    def plain(robots: Robots) -> str:
        # Stray octets of rules are shown as `\\xNN` before, and are `%NN` after.
        return repr(ruled(robots)).replace("\\\\x", "%").lower()

    for body in corpus(files).values():
        robots = parse(body, dialect)
        if b"\xff" not in body:
            assert plain(again(robots)) == plain(robots)
