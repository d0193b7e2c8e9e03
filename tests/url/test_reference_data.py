"""The reference data of web-platform-tests and of Unicode, where it lies beside the project."""

import json
from pathlib import Path

import pytest

from polite.errors import InvalidURL
from polite.url.parse import ParsedURL, parse_url

_DATA = Path(__file__).resolve().parents[3] / "shared" / "wpt"

pytestmark = pytest.mark.skipif(not _DATA.is_dir(), reason="the reference data is not beside the project")


def _cases(name):
    return [case for case in json.loads((_DATA / name).read_text("utf-8")) if isinstance(case, dict)]


def _parsed(case) -> ParsedURL | None:
    try:
        # A base that has no host (about:blank, data:) can resolve nothing that we could fetch.
        base = parse_url(case["base"]) if case.get("base") else None
    except InvalidURL:
        base = None
    try:
        return parse_url(case["input"], base)
    except InvalidURL:
        return None


def _holds(case) -> bool:
    parsed = _parsed(case)
    if parsed is None or case.get("failure"):
        return parsed is None and bool(case.get("failure"))
    found = {
        "href": parsed.href,
        "origin": parsed.origin,
        "protocol": f"{parsed.scheme}:",
        "username": parsed.username,
        "password": parsed.password,
        "hostname": parsed.host,
        "port": "" if parsed.port is None else str(parsed.port),
        "pathname": parsed.path,
        "search": f"?{parsed.query}" if parsed.query else "",
        "hash": f"#{parsed.fragment}" if parsed.fragment else "",
    }
    # A few cases leave the origin out.
    return all(case.get(part, value) == value for part, value in found.items())


def _is_ours(case):
    """What comes to an http(s) URL, and the http(s) URLs that must fail."""
    if case.get("failure"):
        return case["input"].strip().lower().startswith(("http:", "https:"))
    return case["protocol"] in ("http:", "https:")


@pytest.mark.parametrize(
    ("name", "chosen", "number"),
    [
        ("urltestdata.json", _is_ours, 445),
        ("urltestdata.json", lambda case: case.get("protocol") in ("ftp:", "ws:", "wss:"), 30),
        ("ada_extra_urltestdata.json", lambda case: not case.get("failure") and _is_ours(case), 6),
        ("ada_long_urltestdata.json", lambda case: True, 1),
    ],
    ids=["http", "other special schemes", "the oracle's own", "the oracle's long ones"],
)
def test_all_cases_of_the_url_standard_and_of_the_oracle_hold(name, chosen, number):
    cases = [case for case in _cases(name) if chosen(case)]
    assert [case for case in cases if not _holds(case)] == []
    assert len(cases) == number


def test_an_unknown_scheme_that_we_accept_comes_out_as_the_standard_says():
    cases = [c for c in _cases("urltestdata.json") if c.get("href") and not _is_ours(c) and _parsed(c)]
    assert [case for case in cases if _parsed(case).href != case["href"]] == []
    assert len(cases) > 50


@pytest.mark.parametrize(("name", "number"), [("toascii.json", 87), ("IdnaTestV2.json", 2671)])
def test_all_names_become_the_ascii_that_is_expected(name, number):
    cases = _cases(name)
    # An empty host is a question about UTS 46, not about a URL.
    assert [c for c in cases if c["input"] and _host_of(c["input"]) != c["output"]] == []
    assert len(cases) == number


def _host_of(name):
    try:
        return parse_url(f"https://{name}/").host
    except InvalidURL:
        return None
