"""The TDM file of a site: which rule applies to a path, and what a file means that cannot be read."""

import json
from typing import Any

import pytest

from polite.terms.tdm import TDM_LIMIT, TdmFile, parse_tdm_file

# The example of TDMRep, 6.2.2, in our words.
FILE = b"""[
  {"location": "/directory-a/", "tdm-reservation": 1},
  {"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy": "https://example.com/policy.json"},
  {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0}
]"""


def of(*rules: Any) -> TdmFile:
    return parse_tdm_file(json.dumps(rules).encode())


def reserved(file: TdmFile, path: str) -> bool | None:
    rule = file.at(path)
    return None if rule is None else rule.reserved


def test_a_rule_is_a_pattern_with_a_reservation_and_perhaps_a_policy():
    file = parse_tdm_file(FILE)

    assert ([rule.number for rule in file.rules], file.problem) == ([1, 2, 3], None)
    assert [
        reserved(file, path)
        for path in ("/directory-a/x?y", "/directory-b/images/x.jpg", "/directory-b/images/x.png")
    ] == [True, False, None]
    rule = file.at("/directory-b/html/")
    assert rule is not None
    assert rule.policy == "https://example.com/policy.json"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/exact$", "/exact"),
        ("/ü", "/%C3%BC"),
        ("*", "/any"),
        ("a/", "/a/b"),
        ("https://example.com/a/", "/a/b"),
    ],
)
def test_locations_are_matched_as_paths_of_robots_txt(location: str, path: str):
    assert reserved(of({"location": location, "tdm-reservation": 1}), path) is True


@pytest.mark.parametrize(
    ("value", "reserves"),
    [
        *((value, True) for value in ("1", 1.0, True)),
        *((value, None) for value in (2, "0", 0.0, False, None, [1], {}, "yes")),
    ],
)
def test_a_value_that_can_only_mean_1_reserves_and_any_other_is_as_none(value: Any, reserves: bool | None):
    file = of({"location": "/", "tdm-reservation": value}, 5, "x", {}, [[]])

    assert reserved(file, "/") is reserves
    assert all(rule.careful for rule in file.rules)


@pytest.mark.parametrize("location", [{}, {"location": ["/a"]}, {"location": "/" + "a" * 5_000}])
def test_a_reservation_without_a_usable_location_is_for_all_paths(location: dict[str, Any]):
    assert reserved(of({"tdm-reservation": 1, **location}), "/any") is True
    assert of({"tdm-reservation": 0, **location}).rules == ()


@pytest.mark.parametrize(
    "body", [b"", b"<html><p>No such page", b"5", b'"[]"', b"null", b"\xff\xfe[\0", b"<" * 9]
)
def test_a_page_for_any_path_is_no_file(body: bytes):
    file = parse_tdm_file(body + b" " * TDM_LIMIT)

    assert (file.rules, file.problem) == ((), "no list of rules")


@pytest.mark.parametrize(
    "body",
    [FILE[:-20], b"[" * 300_000, b"[" + b"9" * 10_000 + b"]", b"\xef\xbb\xbf [,]", FILE + b"]"],
)
def test_broken_json_reserves_everything(body: bytes):
    file = parse_tdm_file(body)

    assert (reserved(file, "/any"), file.problem) == (True, "broken JSON")


def test_a_file_beyond_the_limits_reserves_what_is_not_read():
    many = of(*[{"location": "/a", "tdm-reservation": 0}] * 10_001)
    assert many.problem == "more than 10000 rules"
    assert (reserved(many, "/a"), reserved(many, "/b")) == (False, True)

    long = parse_tdm_file(FILE + b" " * TDM_LIMIT)
    assert long.problem == f"more than {TDM_LIMIT} octets"
    assert reserved(long, "/directory-b/images/x.jpg") is True
