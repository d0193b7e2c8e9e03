"""Sitemaps, indexes, RSS and Atom: which elements count, and what they say; and lastmod in each form that sites write.

Any octets give the same in any chunks.
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.sitemaps import Alternate, ChangeFrequency, SitemapEntry, SitemapKind, SitemapLink
from polite.sitemaps.entry import NO_DATE, parse_date
from tests.sitemaps.support import FILE, NAMESPACE, XML, pages, read, urls, urlset
from tests.support import examples


def test_an_entry_has_what_its_site_says():
    (entry,) = read(
        urlset(
            "<loc> https://example.com/a?b=1&amp;c=2 </loc><lastmod>2026-05-01</lastmod>"
            "<changefreq>Daily</changefreq><priority>0.8</priority>"
            '<xhtml:link rel="alternate" hreflang="de-CH" href="/de"/>'
            '<xhtml:link rel="alternate" media="print" href="/print"/><xhtml:link rel="canonical" href="/x"/>'
        ).replace("<urlset", '<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml"')
    )[1]

    assert entry == SitemapEntry(
        "https://example.com/a?b=1&c=2",
        lastmod=datetime(2026, 5, 1, tzinfo=UTC),
        lastmod_span=timedelta(days=1),
        priority=0.8,
        changefreq=ChangeFrequency.DAILY,
        alternates=(
            Alternate("https://example.com/de", "de-CH"),
            Alternate("https://example.com/print", media="print"),
        ),
        sitemap=FILE,
    )


def test_an_index_has_links():
    parser, found = read(
        f"{XML}<sitemapindex {NAMESPACE}><sitemap><loc>https://example.com/a.xml.gz</loc><lastmod>2026</lastmod></sitemap>"
        "<sitemap></sitemap></sitemapindex>"
    )

    assert found == [
        SitemapLink("https://example.com/a.xml.gz", datetime(2026, 1, 1, tzinfo=UTC), timedelta(365), FILE)
    ]
    assert (parser.kind, parser.entries, parser.skipped) == (SitemapKind.INDEX, 1, 1)


def test_the_items_of_rss_have_a_link_or_a_permalink():
    parser, found = read(
        '<rss version="2.0"><channel><link>https://example.com/</link>'
        "<item><title>1</title><link>https://example.com/1</link><pubDate>Fri, 01 May 2026 10:00:00 GMT</pubDate></item>"
        "<item><guid>https://example.com/2</guid></item>"
        '<item><guid isPermaLink="false">https://example.com/no</guid></item>'
        '<item><atom:link href="https://example.com/no"/><link>https://example.com/3</link></item></channel></rss>'
    )

    assert [each.url for each in found] == [f"https://example.com/{number}" for number in (1, 2, 3)]
    assert found[0].lastmod == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert (parser.kind, parser.skipped) == (SitemapKind.RSS, 1)


def test_the_entries_of_atom_have_an_alternate_link():
    parser, found = read(
        '<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.com/"/>'
        '<entry><link rel="self" href="/self"/><link rel="alternate" href="/1"/><link href="/1.de" hreflang="de"/>'
        "<published>2025-01-01</published><updated>2026-05-01T10:00:00Z</updated></entry>"
        '<entry><link href="/2"/></entry></feed>'
    )

    assert [each.url for each in found] == ["https://example.com/1", "https://example.com/2"]
    assert found[0].lastmod == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert found[0].alternates == (Alternate("https://example.com/1.de", "de"),)
    assert parser.kind is SitemapKind.ATOM


@pytest.mark.parametrize(
    "data",
    [
        "<a:urlset xmlns:a='x'><a:url><a:loc>https://example.com/</a:loc></a:url></a:urlset>",
        "<URLSET><Url><LOC>https://example.com/</LOC></Url></URLSET>",
        "<urlset><url><loc><![CDATA[https://example.com/]]></loc></url></urlset>",
        "<urlset><url><loc><!-- here -->https://<?php ?>example.com/</loc></url></urlset>",
        "<urlset><url><loc><url>https://example.com/</url></loc></url></urlset>",
        "<urlset><url><loc>https://example.com/</loc><loc>https://example.com/second</loc></url></urlset>",
        "<sitemapindex><url><loc>https://example.com/</loc></url></sitemapindex>",
        "\r\n <?xml version='1.0'?><urlset><url><loc>https://example.com/</loc></url></urlset>",
        "<urlset><url><loc>https://example.com/</loc></url></urlset> </html> & whatever a broken template adds",
        "<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>https://example.com/</loc></url></urlset>",
    ],
)
def test_one_page_in_the_forms_of_real_files(data):
    assert urls(data) == ["https://example.com/"]
    assert urls(data, size=1) == ["https://example.com/"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252"])
@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_each_encoding_has_the_same_urls(encoding, size):
    text = pages(20).replace("/7<", "/é<")
    declared = text if "utf" in encoding else text.replace("UTF-8", encoding)
    assert urls(declared.encode(encoding), size=size) == urls(text)
    assert "https://example.com/%C3%A9" in urls(text)


@pytest.mark.parametrize("location", ["", "#", "ftp://example.com/", "https://", "https://exa mple/"])
def test_what_is_no_url_of_a_page_is_skipped(location):
    parser, found = read(urlset(f"<loc>{location}</loc>", "<loc>https://example.com/</loc>"))
    assert [each.url for each in found] == ["https://example.com/"]
    assert (parser.entries, parser.skipped, parser.problem) == (1, 1, None)


@pytest.mark.parametrize("priority", ["", "high", "1.1", "nan", ".", "0,5"])
def test_a_priority_out_of_its_limits_is_none(priority):
    (entry,) = read(urlset(f"<loc>https://example.com/</loc><priority>{priority}</priority>"))[1]
    assert entry.priority is None


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "date", "span"),
    [
        ("2024", datetime(2024, 1, 1, tzinfo=UTC), 366 * DAY),
        ("2026-02", datetime(2026, 2, 1, tzinfo=UTC), 28 * DAY),
        ("9999-12", datetime(9999, 12, 1, tzinfo=UTC), 31 * DAY),
        ("2026-5-1", datetime(2026, 5, 1, tzinfo=UTC), DAY),
        ("2026-05-01T10:20Z", datetime(2026, 5, 1, 10, 20, tzinfo=UTC), timedelta(minutes=1)),
        # One moment in many forms.
        *(
            (text, datetime(2026, 5, 1, 10, 20, 30, tzinfo=UTC), timedelta(0))
            for text in (
                *("2026-05-01T10:20:30z", "2026-05-01T12:20:30+0200", "2026-05-01T04:50:30-05:30"),
                *("2026-05-01 10:20:30", "2026-05-01T10:20:30.000Z"),
                *("Fri, 01 May 2026 10:20:30 GMT", "01 May 26 10:20:30 GMT"),
            )
        ),
    ],
)
def test_a_date_covers_what_it_leaves_out(text, date, span):
    assert parse_date(text) == (date, span)


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "0000-01-01", "2026-13-01", "2026-02-30", "2026-05-01T25:00Z", "2026-05-01T10:20+99:00", "20260501",
        "2026-05-01T", "2026-05-", "1" * 100, "Fri, 99 May 2026 10:20:30 GMT", ",", "(", "٢٠٢٦-٠٥-٠١", "2026-05-01\0",
    ],
)  # fmt: skip
def test_what_is_no_date(text):
    assert parse_date(text) == NO_DATE


PIECES = "</urlset> <url> </url> <loc>https://example.com/ </loc> <![CDATA[ ]]> &#233; <!-- -->".split()
FILES = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=9).map(
    lambda each: urlset("".join(each))
)
ENCODED = st.builds(str.encode, FILES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.just("replace"))


@examples(100, fast=20)
@given(st.binary(max_size=200) | ENCODED, st.integers(1, 64), st.data())
def test_any_octets_give_the_same_in_any_chunks_and_no_exception(data: bytes, size: int, more: st.DataObject):
    cut = data[: more.draw(st.integers(0, len(data)))]
    small, found = read(cut, size=size)
    whole, all_found = read(cut)
    assert (found, small.problem, small.kind) == (all_found, whole.problem, whole.kind)
