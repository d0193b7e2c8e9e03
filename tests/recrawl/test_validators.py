"""ETag and Last-Modified, from honest servers and from hostile ones (RFC 9110, 8.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.recrawl import Validators, validators_of

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
AT = 784_111_777.0


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', '"67ab43,x-gzip"', '"a=b;c"', '"' + "x" * 510 + '"'])
def test_an_entity_tag_weak_or_strong_is_repeated_as_it_was_sent(etag: str) -> None:
    assert validators_of([etag], []).headers == {"If-None-Match": etag}


@pytest.mark.parametrize(
    "etag",
    [
        *("", "a", "*", '"', '""', 'W/""', "W/a", 'w/"a"', '"a', 'a"', "'a'"),
        *('"a"b"', '"a", "b"', '"a" "b"', '"a b"', 'W/ "a"'),
        *('"a\r\nX: y"', '"a\n"', '"a"\n', '"a"\r\n', '"\0"', '"\x7f"', '"é"', '"\udcff"', '"a\tb"'),
        '"' + "x" * 511 + '"',
    ],
)
def test_what_is_no_entity_tag_is_never_sent(etag: str) -> None:
    assert not validators_of([etag], [])


def test_of_several_that_differ_none_is_trusted() -> None:
    assert validators_of(['"a"', '"b"'], [DATE]) == Validators(None, DATE)
    assert validators_of(['"a"', '"a" '], []) == Validators('"a"', None)
    assert not validators_of([], [DATE, DATE.replace("37", "38")])


@pytest.mark.parametrize(
    "date",
    [DATE, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "sun, 6 nov 1994 8:49:37 UTC"],
)
def test_a_date_is_repeated_in_the_octets_that_were_sent(date: str) -> None:
    assert validators_of([], [f" {date}\t"]).headers == {"If-Modified-Since": date}


@pytest.mark.parametrize(
    "date", ["", "0", "yesterday", f"{DATE}\r\nX: y", f"{DATE}, {DATE}", DATE + " " * 100 + "x"]
)
def test_what_is_no_date_is_never_sent(date: str) -> None:
    assert not validators_of([], [date])


def test_a_date_that_is_not_before_that_of_the_response_is_not_kept() -> None:
    assert [bool(validators_of([], [DATE], AT + later)) for later in (1, 0, -1)] == [True, False, False]


def test_a_304_renews_what_it_names_and_keeps_the_rest() -> None:
    assert Validators('"a"', DATE).renewed(Validators('"b"')) == Validators('"b"', DATE)
    assert Validators('"a"', DATE).renewed(Validators()) == Validators('"a"', DATE)


@given(st.lists(st.text(max_size=40), max_size=3), st.lists(st.text(max_size=80), max_size=3))
def test_whatever_came_what_is_sent_is_one_line_of_printable_ascii(
    etags: list[str], dates: list[str]
) -> None:
    for value in validators_of(etags, dates).headers.values():
        assert value.isascii()
        assert value.isprintable()
        assert len(value) <= 512
