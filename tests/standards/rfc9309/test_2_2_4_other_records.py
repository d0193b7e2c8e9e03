"""RFC 9309, 2.2.4: records that are neither user-agent lines nor rules must not get in the way of those."""

import pytest

from polite.robots.parse import parse


@pytest.mark.parametrize(
    "record", ["Sitemap: https://example.com/sitemap.xml", "Crawl-delay: 5", "Foo: bar", "Foo"]
)
def test_other_records_do_not_part_the_user_agents_of_a_group(record: str):
    robots = parse(f"User-agent: ExampleBot\n{record}\nUser-agent: BazBot\nDisallow: /")

    assert not robots.decide("ExampleBot", "/")
    assert not robots.decide("BazBot", "/")


@pytest.mark.parametrize(
    "record", ["Sitemap: https://example.com/sitemap.xml", "Crawl-delay: 5", "Foo: bar", "Foo"]
)
def test_other_records_do_not_end_a_group(record: str):
    robots = parse(f"User-agent: ExampleBot\nDisallow: /a\n{record}\nDisallow: /b")

    assert not robots.decide("ExampleBot", "/b")
