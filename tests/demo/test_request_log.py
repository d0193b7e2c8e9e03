"""The purpose of a request."""

import pytest

from docs.examples.demo.request_log import Request


@pytest.mark.parametrize(
    ("path", "is_page", "own"),
    [
        ("/", True, False),
        ("/robots.txt?x", True, False),
        ("/hops", True, False),
        ("/robots.txt", False, True),
        ("/hop/a.test/1", False, True),
        ("/hop/b.test/1", False, False),
    ],
)
def test_pages_are_told_from_the_way_to_the_rules(path, is_page, own):
    request = Request(1.0, "a.test", path, 200)

    assert request.is_page is is_page
    assert request.seeks_rules_of("a.test") is own
    assert not request.seeks_rules_of("b.test")
