"""indexing: X-Robots-Tag headers and robots meta elements, as values."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.terms.indexing import HTML_LIMIT, ImagePreview, Indexing, indexing
from tests.support import calls_of


def header(*values: str) -> list[tuple[str, str]]:
    return [("X-Robots-Tag", value) for value in values]


def meta(content: str, name: str = "robots") -> str:
    return f'<!doctype html><html><head><meta name="{name}" content="{content}"></head>'


@pytest.mark.parametrize(
    ("directive", "field", "value"),
    [
        ("noindex", "index", False),
        ("NOFOLLOW", "follow", False),
        ("nocache", "archive", False),
        ("noai", "ai", False),
        ("NoImageAI", "image_ai", False),
        ("indexifembedded", "index_if_embedded", True),
        ("max-snippet:20", "max_snippet", 20),
        ("max-snippet: 0", "max_snippet", 0),
        ("Max-Video-Preview: 5", "max_video_preview", 5),
        ("max-image-preview: large", "max_image_preview", ImagePreview.LARGE),
    ],
)
def test_each_directive_is_a_value_in_headers_and_in_pages(directive: str, field: str, value: object):
    expected = Indexing(**{field: value})

    assert indexing(header(directive)) == expected
    assert indexing(html=meta(directive)) == expected


@pytest.mark.parametrize(
    "directive", ["all", "index, follow", "", ",", "max-snippet:-1", "max-video-preview: -1", "archive"]
)
def test_what_asks_for_nothing_is_the_default(directive: str):
    assert indexing(header(directive), meta(directive)) == Indexing() == indexing()


@pytest.mark.parametrize(
    "date",
    ["Fri, 25 Jun 2010 15:00:00 GMT", "25 Jun 2010 07:00:00 PST", "2010-06-25T15:00:00"],
)
def test_dates_come_in_the_forms_that_are_written(date: str):
    asked = indexing(header(f"noarchive, unavailable_after: {date}, nofollow"))

    assert asked == Indexing(
        archive=False, follow=False, unavailable_after=datetime(2010, 6, 25, 15, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    "directive",
    [
        "unavailable_after: 0001-01-01T00:00:00+23:00",
        "unavailable_after: 99999999999999999999 Jun 2010 15:00:00 GMT",
        "unavailable_after: " + "1" * 100,
        "max-snippet: -2",
        "max-snippet: 9999999999",
        "a b: noindex",
    ],
)
def test_what_is_not_understood_is_kept_as_written(directive: str):
    assert indexing(header(directive)).unknown == (directive,)


def test_the_more_restrictive_wins():
    asked = indexing(
        header("index, max-snippet: 50, max-image-preview: large", "unavailable_after: 2020-01-02, nofun"),
        meta("noindex, max-snippet: 20, max-image-preview: standard, unavailable_after: 2020-01-01, nofun"),
    )

    assert asked == Indexing(
        index=False,
        max_snippet=20,
        max_image_preview=ImagePreview.STANDARD,
        unavailable_after=datetime(2020, 1, 1, tzinfo=UTC),
        unknown=("nofun",),
    )


def test_a_header_names_the_agents_it_is_for():
    headers = header(
        "googlebot: nofollow, max-snippet: 5, otherbot: noindex, unavailable_after: 2020-01-01", "noarchive"
    )

    assert indexing(headers) == Indexing(archive=False)
    assert indexing(headers, agent="Googlebot/2.1") == Indexing(archive=False, follow=False, max_snippet=5)
    assert indexing(headers, agent="otherbot").index is False
    assert indexing(headers, agent="otherbot").unavailable_after == datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "html",
    [
        "<meta content='noindex' name = ROBOTS />",
        "<p>no head<meta name=' robots ' content='no&#105;ndex'>",
        "<![CDATA[ x ]]><?pi?><!x><meta name=robots content=noindex>",
        "<!-- c --><meta name=robots content=noindex name=other>",
        "<script>'</script><meta name=robots content=noindex><unfinished",
        '<p title="a>b" \'><meta name=robots content=noindex>',
        "<!--><meta name=robots content=noindex>",
        "</ '><meta name=robots content=noindex>",
        "<script/><meta name=robots content=noindex>",
        "<SCRIPT a='>'></scripts></Script\n><meta name=robots content=noindex>",
        "<p = a=><meta/name=robots\ncontent=noindex>",
        "<x<meta><meta name=robots content='>,noindex'>",
    ],
)
def test_a_meta_element_is_found_as_browsers_find_it(html: str):
    assert indexing(html=html).index is False
    assert indexing(html=html.encode()).index is False
    assert indexing(html=html.encode("utf-16")).index is False


@pytest.mark.parametrize(
    "html",
    [
        "<!-- <meta name=robots content=noindex> -->",
        "<script>'<meta name=robots content=noindex>'</script>",
        "<p title='<meta name=robots content=noindex>'>",
        "<style><meta name=robots content=noindex></style x",
        "<!-- --><!--<meta name=robots content=noindex>",
        "<x<meta name=robots content=noindex>",
        "<meta name=robots content='noindex>",
        "<metal name=robots content=noindex>",
        " " * HTML_LIMIT + "<meta name=robots content=noindex>",
    ],
)
def test_what_is_no_robots_meta_element_says_nothing(html: str):
    assert indexing(html=html) == Indexing()


def test_a_page_may_be_in_an_index_until_its_time_is_over():
    until = datetime(2020, 1, 1, tzinfo=UTC)

    assert Indexing(unavailable_after=until).indexable(until - timedelta(seconds=1))
    assert not Indexing(unavailable_after=until).indexable(until)
    assert not Indexing(index=False).indexable(until)


directives = st.lists(
    st.sampled_from(
        [
            "noindex",
            "max-snippet: 3",
            "max-snippet: 7",
            "unavailable_after: 2020-01-01",
            "noai",
            "googlebot: none",
            "x",
        ]
    ),
    max_size=6,
).map(", ".join)


@given(st.lists(directives, max_size=4), directives, st.sampled_from(["*", "googlebot"]))
def test_more_directives_never_allow_more(values: list[str], more: str, agent: str):
    before, after = indexing(header(*values), agent=agent), indexing(header(*values, more), agent=agent)

    assert after | before == after
    assert before.index or not after.index


@given(
    st.text(max_size=200) | st.text("<!-[]meta nmrobts='\"/>", max_size=60),
    st.text(max_size=80) | st.text("unavailable_after: ,-0123456789T+Z", max_size=60),
)
def test_nothing_that_a_server_sends_is_an_error(html: str, value: str):
    assert isinstance(indexing(header(value), html, agent="a"), Indexing)
    assert isinstance(
        indexing(header(f"unavailable_after: {value}"), html.encode("utf-8", "replace")), Indexing
    )


@pytest.mark.parametrize(
    ("attributes", "unknown"),
    [
        ("name=robots content==x", ("=x",)),
        ("name=robots content=x/y", ("x/y",)),
        ("name=robots content = 'x' content='noindex'", ("x",)),
        ("NAME='ROBOTS'/CONTENT='&lt;x&#x3e;'/", ("<x>",)),
        ("name=robots content", ()),
        ("=name=robots content=x", ()),
    ],
)
def test_attributes_are_taken_apart_as_the_standard_says(attributes: str, unknown: tuple[str, ...]):
    assert indexing(html=f"<meta {attributes}>") == Indexing(unknown=unknown)


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "<a x='",
        "<a>",
        "<meta name=a content=b>",
        "<script></script>",
        f"<meta name=robots content=x{' a=1' * 60}>",
    ],
)
def test_a_hostile_page_costs_little(piece: str):
    whole, half = (piece * (size // len(piece)) for size in (HTML_LIMIT, HTML_LIMIT // 2))

    taken = calls_of(lambda: indexing(html=whole))

    assert taken <= 2.5 * calls_of(lambda: indexing(html=half)) + 1_000
    # Two calls for each piece of a page, and what meta elements with a content take.
    assert taken <= 2 * HTML_LIMIT + 20_000


@pytest.mark.parametrize(
    "values",
    [[",".join(["otherbot: all"] * 1_001)], ["all"] * 1_001, ["x" * HTML_LIMIT + "x"]],
)
def test_more_directives_than_are_read_forbid_everything(values: list[str]):
    asked = indexing(header(*values))

    assert not any((asked.index, asked.follow, asked.archive, asked.snippet, asked.translate))
    assert not any((asked.image_index, asked.ai, asked.image_ai, asked.sitelinks_searchbox))


def test_an_element_behind_a_thousand_others_counts():
    others = '<meta name="citation_reference" content="a">' * 1_500

    assert not indexing(html=f'{others}<meta name="robots" content="noindex">').index
    assert indexing(html=others).index


# Robots-Tag (draft-illyes-repext-03).


def tag(*values: str, agent: str = "*") -> Indexing:
    return indexing([("Robots-Tag", value) for value in values], agent=agent)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("noindex;nofollow", Indexing(index=False, follow=False)),
        ("NoIndex", Indexing(index=False)),
        ("noindex=?0", Indexing()),
        ("noindex=yes", Indexing(index=False)),
        ("max-snippet=-1", Indexing()),
        ("max-snippet=1.5", Indexing(unknown=("max-snippet: 1.5",))),
        (
            "unavailable_after=@1900000000",
            Indexing(unavailable_after=datetime(2030, 3, 17, 17, 46, 40, tzinfo=UTC)),
        ),
        ("unavailable_after=@999999999999999", Indexing(unknown=("unavailable_after: @999999999999999",))),
        (
            'unavailable_after="Fri, 25 Jun 2010 15:00:00 GMT"',
            Indexing(unavailable_after=datetime(2010, 6, 25, 15, tzinfo=UTC)),
        ),
    ],
)
def test_each_parameter_is_a_directive(parameters: str, expected: Indexing):
    assert tag(f"*;{parameters}") == tag(f'"*";{parameters}, other;noai') == expected


@pytest.mark.parametrize(
    "value",
    [
        # X-Robots-Tag's syntax, and what RFC 9651 voids.
        *("noindex", "a, noindex", "examplebot: noindex", "examplebot:noindex", "none, x", "*; noindex;"),
        *("examplebot;noindex, ü", "*;noindex, other;;", "EXAMPLEBOT;NOINDEX", "(examplebot x);noindex"),
        *("*;noindex=, 1", "*;\tnoindex"),
    ],
)
def test_a_directive_that_can_be_told_of_another_line_counts(value: str):
    assert tag(value, agent="ExampleBot").index is False


@pytest.mark.parametrize("value", ["", "examplebot", "*", "7;noindex", "other;noindex, ;", "other: noindex"])
def test_what_names_no_crawler_or_no_directive_has_no_effect(value: str):
    assert tag(value, agent="ExampleBot") == Indexing()


def test_a_robots_tag_that_is_not_read_to_its_end_forbids_everything():
    assert not tag("a;b," * 100_000 + "a").index
    assert not tag("a;b," * 1_500 + "a").index
