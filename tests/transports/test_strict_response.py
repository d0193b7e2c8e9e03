"""The reader of responses: what it hands on, in whatever pieces it comes, and what it does not."""

import asyncio
import re
from itertools import pairwise

import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from polite.transports import connection_pool as wire
from polite.transports.connection_pool import StrictResponse

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


class Transport(asyncio.Transport):
    closed = False

    def close(self) -> None:
        self.closed = True


def read(*chunks: bytes) -> tuple[bytes, bool]:
    """What aiohttp gets of it, and whether the connection was cut."""
    handed: list[bytes] = []
    loop = asyncio.new_event_loop()
    try:
        watched = StrictResponse(loop)
        watched.transport = Transport()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ResponseHandler, "data_received", lambda _, data: handed.append(data))
            for chunk in chunks:
                watched.data_received(chunk)
    finally:
        loop.close()
    return b"".join(handed), watched.transport.closed


def pieces(data: bytes, *cuts: int) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(st.lists(st.integers(0, 60), max_size=8))
def test_an_honest_response_comes_through_in_whatever_pieces(cuts: list[int]) -> None:
    response = HEAD + b"abcdef"

    assert read(*pieces(response, *cuts)) == (response, False)


@pytest.mark.parametrize("head", [HEAD, HEAD.replace(b"\r\n", b"\n"), HEAD.replace(b"Length:", b"LENGTH :")])
def test_octets_beyond_the_length_cut_the_connection_before_the_body_is_whole(head: bytes) -> None:
    assert read(head + b"abcdefg") == (head + b"abcde", True)


def test_octets_beyond_the_length_are_seen_in_a_later_piece_too() -> None:
    assert read(HEAD + b"abc", b"defg") == (HEAD + b"abcde", True)


@pytest.mark.parametrize("following", [b"HTTP/1.1 200 OK\r\n", b"HTTP", b"\r\nHTTP/1.1"])
def test_another_response_behind_the_body_cuts_the_connection_and_not_the_body(following: bytes) -> None:
    assert read(HEAD + b"abcdef" + following) == (HEAD + b"abcdef", True)


def test_a_response_without_a_length_is_held_to_none() -> None:
    response = b"HTTP/1.1 200 OK\r\n\r\nabc"

    assert read(response, b"def") == (response + b"def", False)


@given(st.lists(st.integers(0, 200), max_size=8))
def test_interim_responses_are_dropped(cuts: list[int]) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + b"HTTP/1.0 100 Continue\n\n"

    assert read(*pieces(interim + HEAD + b"abcdef", *cuts)) == (HEAD + b"abcdef", False)


def test_a_change_of_protocol_is_no_interim_response() -> None:
    switching = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"

    assert read(switching) == (switching, False)


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n", b"\x15\x03", b"User-agent: *\n", b"ICY 200 OK\r\n"])
def test_what_does_not_begin_like_http_is_ended_so_that_it_is_refused_at_once(data: bytes) -> None:
    assert read(data) == (data + b"\r\n\r\n", False)


def test_empty_lines_before_a_head_are_let_through() -> None:
    assert read(b"\r\n", HEAD + b"abcdef") == (b"\r\n" + HEAD + b"abcdef", False)


def test_a_head_that_does_not_end_is_handed_on_for_aiohttp_to_refuse() -> None:
    endless = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000

    assert read(endless, b"z") == (endless + b"z", False)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_no_octets_make_it_raise(data: bytes, cuts: list[int]) -> None:
    handed, _ = read(*pieces(b"HTTP/1.1 200 OK\r\n" + data, *cuts))

    assert len(handed) <= len(data) + 21


class Searching:
    """The pattern for a head's end, which counts the octets that it is asked to look at."""

    def __init__(self) -> None:
        self.octets = 0
        self.pattern = wire._END_OF_HEAD

    def search(self, heads: bytearray, start: int = 0) -> re.Match[bytes] | None:
        self.octets += len(heads) - start
        return self.pattern.search(heads, start)


def test_a_head_that_drips_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searching = Searching()
    monkeypatch.setattr(wire, "_END_OF_HEAD", searching)
    head = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 6_000 + b"\r\nContent-Length: 3\r\n\r\n"
    octets = [bytes([octet]) for octet in head]

    assert read(b"HTTP/1.1 103 Early Hints\r\n\r\n", *octets, b"abc") == (head + b"abc", False)
    assert searching.octets <= 4 * len(head) + 100


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n\r\n", b"\r\n\n"])
def test_the_end_of_a_head_is_seen_wherever_it_is_cut(end: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3" + end

    for cut in range(1, len(head)):
        for again in range(cut + 1, len(head)):
            assert read(head[:cut], head[cut:again], head[again:] + b"abcd") == (head + b"ab", True)
