"""indexing: X-Robots-Tag and Robots-Tag headers and robots meta elements, as values."""

from datetime import UTC, datetime

import pytest

from polite.terms.indexing import HTML_LIMIT, ImagePreview, Indexing, indexing

IN_2010 = datetime(2010, 6, 25, 15, tzinfo=UTC)


def header(*values: str) -> list[tuple[str, str]]:
    return [("X-Robots-Tag", value) for value in values]


def meta(content: str, name: str = "robots") -> str:
    return f'<!doctype html><html><head><meta name="{name}" content="{content}"></head>'


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("noindex", Indexing(index=False)),
        ("NOFOLLOW", Indexing(follow=False)),
        ("nocache", Indexing(archive=False)),
        ("NoImageAI", Indexing(image_ai=False)),
        ("indexifembedded", Indexing(index_if_embedded=True)),
        ("max-snippet:20", Indexing(max_snippet=20)),
        ("max-snippet: 0", Indexing(max_snippet=0)),
        ("Max-Video-Preview: 5", Indexing(max_video_preview=5)),
        ("max-image-preview: large", Indexing(max_image_preview=ImagePreview.LARGE)),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", Indexing(unavailable_after=IN_2010)),
        ("unavailable_after: 25 Jun 2010 07:00:00 PST", Indexing(unavailable_after=IN_2010)),
        ("unavailable_after: 2010-06-25T15:00:00", Indexing(unavailable_after=IN_2010)),
        *((plain, Indexing()) for plain in ("all", "index, follow", "", ",", "max-snippet:-1", "archive")),
        *(
            (odd, Indexing(unknown=(odd,)))
            for odd in (
                "unavailable_after: 0001-01-01T00:00:00+23:00",
                "unavailable_after: 99999999999999999999 Jun 2010 15:00:00 GMT",
                "unavailable_after: " + "1" * 100,
                "max-snippet: -2",
                "max-snippet: 9999999999",
                "a b: noindex",
            )
        ),
    ],
)
def test_each_directive_is_a_value_in_headers_and_in_pages(directive: str, expected: Indexing):
    assert indexing(header(directive)) == indexing(html=meta(directive)) == expected
    assert indexing(header(f"noarchive, {directive}, noai")) == expected | Indexing(archive=False, ai=False)


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
    assert indexing(headers, agent="otherbot") == Indexing(
        archive=False, index=False, unavailable_after=datetime(2020, 1, 1, tzinfo=UTC)
    )


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
        '<meta name="citation_reference" content="a">' * 1_500 + "<meta name=robots content=noindex>",
    ],
)
def test_a_meta_element_is_found_as_browsers_find_it(html: str):
    for page in (html, html.encode(), html.encode("utf-16") if len(html) < 999 else html):
        assert indexing(html=page).index is False


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


@pytest.mark.parametrize(
    "headers",
    [
        header(",".join(["otherbot: all"] * 1_001)),
        header(*["all"] * 1_001),
        header("x" * HTML_LIMIT + "x"),
        [("Robots-Tag", "a;b," * 100_000 + "a")],
        [("Robots-Tag", "a;b," * 1_500 + "a")],
    ],
)
def test_more_directives_than_are_read_forbid_everything(headers: list[tuple[str, str]]):
    asked = indexing(headers)
    assert not any((asked.index, asked.follow, asked.archive, asked.snippet, asked.translate))
    assert not any((asked.image_index, asked.ai, asked.image_ai, asked.sitelinks_searchbox))


# Robots-Tag (draft-illyes-repext-03).


def tag(value: str, agent: str = "*") -> Indexing:
    return indexing([("Robots-Tag", value)], agent=agent)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("noindex;nofollow", Indexing(index=False, follow=False)),
        ("NoIndex", Indexing(index=False)),
        ("noindex=?0", Indexing()),
        ("noindex=yes", Indexing(index=False)),
        ("max-snippet=-1", Indexing()),
        ("max-snippet=1.5", Indexing(unknown=("max-snippet: 1.5",))),
        ("unavailable_after=@1277478000", Indexing(unavailable_after=IN_2010)),
        ("unavailable_after=@999999999999999", Indexing(unknown=("unavailable_after: @999999999999999",))),
        ('unavailable_after="Fri, 25 Jun 2010 15:00:00 GMT"', Indexing(unavailable_after=IN_2010)),
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
