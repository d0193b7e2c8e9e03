"""Dot segments and the characters of a path."""

import pytest

from polite.url.parse import normalise_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/..", "/"),
        ("/a/.", "/a/"),
        ("/..", "/"),
        ("/../../a", "/a"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e", "/"),
        ("/a/%2e/b", "/a/b"),
        ("/a//../b", "/a/b"),
        ("//a", "//a"),
        ("/...", "/..."),
        ("/.a/..b", "/.a/..b"),
        ("/a/%2ea", "/a/%2ea"),
    ],
)
def test_dot_segments_are_resolved(path, expected):
    assert normalise_path(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/é", "/%C3%A9"),
        ("/a b", "/a%20b"),
        ('/"<>`{}^', "/%22%3C%3E%60%7B%7D%5E"),
        ("/%c3%A9%zz%", "/%c3%A9%zz%"),
        ("/!$&'()*+,-.:;=@[]_|~", "/!$&'()*+,-.:;=@[]_|~"),
        ("/\x00\x7f", "/%00%7F"),
        ("/💩", "/%F0%9F%92%A9"),
    ],
)
def test_what_is_not_encoded_is_and_what_is_stays(path, expected):
    assert normalise_path(path) == expected


def test_many_dot_segments_cost_no_more_than_their_length():
    assert normalise_path("/a" * 10_000 + "/.." * 10_000) == "/"
