"""Retry-After as servers send it (RFC 9110, 10.2.3 and 5.6.7), found in the headers of every HTTP client."""

import http
import http.client
from collections import UserDict, defaultdict
from types import MappingProxyType
from wsgiref.headers import Headers as WsgiHeaders

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict

from polite.errors import InvalidOption
from polite.pacing.outcome import reported, retry_after_s

# Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
THEN, DATE = 784_111_777.0, "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("0", 0.0), (" 120\t", 120.0), ("007", 7.0), ("9" * 30, 1e30)),
        *(
            (text, None)
            for text in ("", " ", "soon", "-5", "+5", "1e3", "inf", "1_000", "٣٠", "12\x00", "5, 6")
        ),
        *(("9" * 65, None), (f"{DATE:200}.", None), ("Sun, 31 Feb 1994 08:49:37 GMT", None)),
    ],
)
def test_digits_are_seconds_and_anything_else_but_a_date_is_none(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, THEN) == seconds


@pytest.mark.parametrize("date", [DATE, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])
def test_a_date_in_each_of_the_three_forms_is_counted_from_now_and_a_past_one_says_nothing(date: str) -> None:
    assert [retry_after_s(date, THEN + late) for late in (-90.0, 0.0, 1.0)] == [90.0, 0.0, None]


words = st.sampled_from(
    ["Sun,", "06", "Nov", "1994", "0", "08:49:37", "+9999", "GMT", "-", ":", ",", " ", "("]
)


@given(st.one_of(st.text(), st.lists(words, max_size=12).map(" ".join), st.lists(words).map("".join)))
def test_no_value_raises_or_hurries(value: str) -> None:
    seconds = retry_after_s(value, THEN)
    assert seconds is None or seconds >= 0


def http_message(fields: dict[str, str]) -> http.client.HTTPMessage:
    message = http.client.HTTPMessage()
    for name, value in fields.items():
        message[name] = value
    return message


KINDS = [
    dict,
    MappingProxyType,
    UserDict,
    lambda fields: defaultdict(list, {name: [value] for name, value in fields.items()}),
    lambda fields: defaultdict(lambda: "0", fields),
    MultiDict,
    lambda fields: CIMultiDictProxy(CIMultiDict(fields)),
    http_message,
    lambda fields: WsgiHeaders(list(fields.items())),
    lambda fields: list(fields.items()),
    lambda fields: iter(fields.items()),
    lambda fields: {name.encode(): value.encode() for name, value in fields.items()},
    lambda fields: [(name.encode(), bytearray(value.encode())) for name, value in fields.items()],
]


@pytest.mark.parametrize("name", ["Retry-After", "rEtRy-AfTeR"])
@pytest.mark.parametrize("kind", KINDS)
def test_retry_after_is_found_in_any_spelling(kind, name):
    headers = kind({"Content-Type": "text/html", name: "120", "X-Other": "1"})
    assert reported(429, headers, lambda: 0.0).retry_after_s == 120.0


@pytest.mark.parametrize("headers", [5, "Retry-After: 5", [("a", "b", "c")]])
def test_what_are_no_headers_is_refused_by_name(headers):
    with pytest.raises(InvalidOption, match="headers must be"):
        reported(429, headers, lambda: 0.0)


@pytest.mark.parametrize("status", [True, "429", 429.0, None, -1, 1000])
def test_what_is_no_status_is_refused_by_name(status):
    with pytest.raises(InvalidOption, match="report: status must be"):
        reported(status, None, lambda: 0.0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((120, 120.0), (0.5, 0.5), (0, 0.0), ([5, 120.0, "7"], 120.0), (10**60, 1e60)),
        # What says nothing that can be used, as in a text.
        *((-1, None), (float("nan"), None), (float("inf"), None), (True, None), (None, None)),
        pytest.param(10**5000, None, id="huge"),
    ],
)
def test_a_number_counts_as_seconds(value, expected):
    assert reported(503, {"Retry-After": value}, lambda: 0.0).retry_after_s == expected
