"""Where a robots.txt is and what it covers: rows L1 to L6. The location is the same in every dialect."""

import pytest

from polite.origin import Origin, Target


def _covers(robots_url, url):
    """Whether the file at `robots_url` is the one that speaks for `url`."""
    return Target.of(url).origin.robots_url == Target.of(robots_url).url


@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        ("http://example.com/", "http://example.com/robots.txt"),
        ("https://example.com/folder/page.html?q", "https://example.com/robots.txt"),
        ("http://example.com:8181/a", "http://example.com:8181/robots.txt"),
        ("ftp://example.com/a", "ftp://example.com/robots.txt"),
    ],
)
def test_l1_the_file_is_at_the_top_of_the_origin(url, robots_url):
    assert Origin.of(url).robots_url == robots_url


def test_l1_a_file_in_a_sub_folder_is_not_a_robots_file():
    assert not _covers("http://example.com/folder/robots.txt", "http://example.com/folder/")
    assert not _covers("http://example.com/folder/robots.txt", "http://example.com/folder/page")


def test_l2_the_rules_hold_for_everything_below_the_origin_and_for_no_other_scheme_host_or_port():
    for url in ("http://example.com/", "http://example.com/folder/file", "HTTP://EXAMPLE.COM/folder/"):
        assert _covers("http://example.com/robots.txt", url)
    for url in ("http://other.example.com/", "https://example.com/", "http://example.com:8181/"):
        assert not _covers("http://example.com/robots.txt", url)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "http://shop.www.example.com/", "http://www.shop.example.com/"]
)
def test_l3_a_sub_domain_is_another_host(url):
    assert _covers("http://www.example.com/robots.txt", "http://www.example.com/")
    assert not _covers("http://www.example.com/robots.txt", url)


def test_l4_an_internationalised_host_equals_its_punycode():
    assert _covers("http://www.müller.eu/robots.txt", "http://www.xn--mller-kva.eu/")
    assert _covers("http://www.xn--mller-kva.eu/robots.txt", "http://www.müller.eu/")


@pytest.mark.parametrize("spelling", ["212.96.21013", "0xd4605215", "3563082261", "0324.0140.0122.025"])
def test_l5_an_ip_address_stands_for_itself_alone_in_every_spelling(spelling):
    assert _covers("http://212.96.82.21/robots.txt", f"http://{spelling}/")
    assert not _covers(f"http://{spelling}/robots.txt", "http://example.com/")


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443), ("ftp", 21)])
def test_l6_the_default_port_equals_no_port(scheme, port):
    assert _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com/")
    assert _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com:{port}/")
    assert _covers(f"{scheme}://example.com/robots.txt", f"{scheme}://example.com:{port}/")
    assert not _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com:{port + 1}/")
