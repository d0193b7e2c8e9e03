"""RFC 9309, 2.2.3: the number sign, the dollar and the star."""

import pytest

from polite.robots.parse import parse


def test_a_number_sign_starts_a_comment():
    robots = parse("user-agent: * # all\nallow: /a # comment in line\n# comment on its own\ndisallow: /")

    assert robots.decide("ExampleBot", "/a")
    assert not robots.decide("ExampleBot", "/#")


def test_a_dollar_marks_the_end_of_the_match_pattern():
    robots = parse("user-agent: *\nallow: /this/path/exactly$\ndisallow: /")

    assert robots.decide("ExampleBot", "/this/path/exactly")
    assert not robots.decide("ExampleBot", "/this/path/exactly/not")


@pytest.mark.parametrize(
    ("path", "allowed"), [("/this/x/exactly", True), ("/this//exactly", True), ("/this/exactly", False)]
)
def test_a_star_stands_for_any_run_of_characters(path: str, allowed: bool):
    robots = parse("user-agent: *\nallow: /this/*/exactly\ndisallow: /")

    assert robots.decide("ExampleBot", path).allowed is allowed


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/path/foo-%24$", "/path/foo-%24"),
        ("/path/*-%2A$", "/path/x-*"),
        ("/a$b", "/a%24b"),
    ],
)
def test_special_characters_are_meant_as_themselves_when_escaped(rule: str, path: str):
    assert not parse(f"user-agent: *\ndisallow: {rule}").decide("ExampleBot", path)


@pytest.mark.parametrize(("rule", "path"), [("/%2A.html", "/x.html"), ("/foo%24", "/foo"), ("/%2A", "/")])
def test_escaped_they_are_not_special(rule: str, path: str):
    assert parse(f"user-agent: *\ndisallow: {rule}").decide("ExampleBot", path)
