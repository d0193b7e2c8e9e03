"""Sitemaps: row S1 of the digest."""

import pytest

from polite.robots.dialect import GOOGLE, RFC9309, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import every_dialect


@every_dialect
def test_s1_any_number_of_sitemaps_on_any_host_anywhere_in_the_file(dialect: Dialect):
    body = (
        "Sitemap: https://example.com/a.xml\nuser-agent: otherbot\ndisallow: /\n"
        "SITEMAP:http://other.example.org/b.xml # news\nsitemap: ftp://example.com/ü.xml\n"
    )

    robots = parse(body, dialect)

    assert robots.sitemaps == (
        "https://example.com/a.xml",
        "http://other.example.org/b.xml",
        "ftp://example.com/ü.xml",
    )


@every_dialect
@pytest.mark.parametrize("value", ["", "/sitemap.xml", "sitemap.xml", "//example.com/a.xml", "none"])
def test_s1_a_sitemap_is_an_absolute_url(dialect: Dialect, value: str):
    assert parse(f"sitemap: {value}", dialect).sitemaps == ()


def test_s1_google_reads_a_hyphen_into_it():
    assert parse("site-map: https://example.com/a.xml", GOOGLE).sitemaps == ("https://example.com/a.xml",)
    assert parse("site-map: https://example.com/a.xml", RFC9309).sitemaps == ()
