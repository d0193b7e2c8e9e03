"""Standard input as lines: bounded, as they arrive, and without blocking the end of the program."""

import asyncio
import queue
import threading
from concurrent.futures import Future

import pytest

from polite.cli.stdin import LONGEST_LINE, _serve, in_thread, split


def _reads(*chunks):
    return iter([*chunks, b""]).__next__


def test_lines_come_out_of_whatever_pieces_they_arrive_in():
    assert list(split(_reads(b"a", b"b\nc", b"\n\nd\ne"))) == [b"ab", b"c", b"", b"d", b"e"]


def test_a_line_is_given_before_more_is_read():
    lines = split(_reads(b"a\nb"))

    assert next(lines) == b"a"


def test_of_a_line_too_long_only_its_start_is_kept():
    chunks = [b"x" * 50_000] * 20

    first, second = split(_reads(*chunks, b"x\ny"))

    assert first == b"x" * (LONGEST_LINE + 1)
    assert second == b"y"


def test_a_line_that_its_last_piece_makes_too_long_is_cut_as_well():
    first, second = split(_reads(b"x" * LONGEST_LINE, b"xyz\ny"))

    assert (len(first), second) == (LONGEST_LINE + 1, b"y")


def test_a_line_too_long_in_one_piece_is_cut_as_well():
    first, second = split(_reads(b"x" * 2 * LONGEST_LINE + b"\ny\n"))

    assert (len(first), second) == (LONGEST_LINE + 1, b"y")


async def test_in_thread_yields_the_same_items():
    assert [item async for item in in_thread(iter("abc"))] == ["a", "b", "c"]


async def test_an_error_of_the_source_is_raised_in_the_waiting_reader():
    def failing():
        yield "a"
        raise IsADirectoryError

    source = in_thread(failing())

    assert await anext(source) == "a"
    with pytest.raises(IsADirectoryError):
        await anext(source)


async def test_nothing_is_read_before_it_is_wanted():
    asked = []
    source = in_thread(asked.append(n) or n for n in range(10))

    await anext(source)
    await source.aclose()

    assert asked == [0]


async def test_a_line_that_never_comes_does_not_block_the_end():
    begun, never = threading.Event(), threading.Event()
    source = in_thread(iter(lambda: begun.set() or never.wait(), True))
    waiting = asyncio.create_task(anext(source))
    while not begun.is_set():
        await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await source.aclose()

    assert not never.is_set()
    never.set()


async def test_a_reader_cancelled_before_its_line_takes_no_line():
    reading, go_on = threading.Event(), threading.Event()

    def slow():
        reading.set()
        go_on.wait()
        yield from "ab"

    wanted: queue.SimpleQueue[Future[list[str]] | None] = queue.SimpleQueue()
    served, left = Future(), Future()
    for answer in (served, left):
        wanted.put(answer)
    thread = threading.Thread(target=_serve, args=(slow(), wanted))
    thread.start()
    reading.wait()
    left.cancel()
    go_on.set()
    thread.join(10)

    assert not thread.is_alive()
    assert served.result() == ["a"]
    assert left.cancelled()
