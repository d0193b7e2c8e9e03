"""Files of each kind that crawler-commons names among its tests: extensions, RSS of each version, indexes without locations."""

from datetime import UTC, datetime

import pytest

from polite.sitemaps import Alternate, SitemapKind
from tests.sitemaps.support import read, urls, urlset

PAGE = "<loc>https://example.com/page</loc>"


@pytest.mark.parametrize(
    "extension",
    [
        "<image:image><image:loc>/i.png</image:loc><image:caption>A</image:caption></image:image>",
        "<news:news><news:publication><news:name>N</news:name></news:publication><news:title>&lt;T&gt;</news:title></news:news>",
        "<video:video><video:content_loc>/v.mp4</video:content_loc><video:duration>600</video:duration></video:video>",
        "<video:video><video:tvshow><video:show_title>T</video:show_title></video:tvshow><video:price/></video:video>",
        "<mobile:mobile/>",
        (
            '<PageMap xmlns="http://www.google.com/schemas/sitemap-pagemap/1.0"><DataObject type="d" id="h">'
            '<Attribute name="name">v</Attribute><loc>/no</loc></DataObject></PageMap>'
        ),
    ],
    ids=["image", "news", "video", "tv show", "mobile", "page map"],
)
def test_an_extension_of_an_entry_is_passed_over(extension):
    assert urls(urlset(f"{extension}{PAGE}", f"{PAGE}{extension}")) == ["https://example.com/page"] * 2


def test_links_to_other_languages_are_alternates():
    link = '<xhtml:link rel="alternate" hreflang="{0}" href="https://example.com/{0}"/>'
    (entry,) = read(urlset(PAGE + link.format("de") + link.format("x-default")))[1]

    assert entry.alternates == (
        Alternate("https://example.com/de", "de"),
        Alternate("https://example.com/x-default", "x-default"),
    )


def test_a_link_of_an_index_without_a_location_is_skipped():
    parser, found = read(
        "<sitemapindex><sitemap><lastmod>2026-05-01</lastmod></sitemap><sitemap><loc></loc></sitemap>"
        "<sitemap><loc>https://example.com/map?a=1&amp;b=2</loc></sitemap></sitemapindex>"
    )

    assert [each.url for each in found] == ["https://example.com/map?a=1&b=2"]
    assert (parser.skipped, parser.problem) == (2, None)


def test_rss_1_has_items_beside_its_channel():
    parser, found = read(
        '<rdf:RDF xmlns:rdf="urn:rdf" xmlns="urn:rss"><channel><link>https://example.com/</link><items><rdf:Seq/></items></channel>'
        "<image><link>https://example.com/image</link></image>"
        "<item><link>https://example.com/1</link><dc:date>2026-05-01T10:00Z</dc:date></item></rdf:RDF>"
    )

    assert [(each.url, each.lastmod) for each in found] == [
        ("https://example.com/1", datetime(2026, 5, 1, 10, tzinfo=UTC))
    ]
    assert parser.kind is SitemapKind.RSS


@pytest.mark.parametrize(
    "date",
    [
        "Fri, 01 May 2026 10:00:00 GMT",
        "Fri, 01 May 2026 12:00:00 +0200",
        "Fri, 01 May 26 10:00:00 GMT",
        "01 May 2026 10:00:00 GMT",
        "2026-05-01T10:00:00Z",
    ],
)
def test_the_publication_date_of_rss_in_many_forms(date):
    (entry,) = read(
        f"<rss><channel><item><link>https://example.com/1</link><pubDate>{date}</pubDate></item></channel></rss>"
    )[1]

    assert entry.lastmod == datetime(2026, 5, 1, 10, tzinfo=UTC)
