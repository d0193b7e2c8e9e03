"""`python -m tests.system.soaking.server LOG`: a thousand origins on loopback: how each answers, and what it asks for.

It plays all on one port, and writes down each request until its input ends.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from enum import Enum

from polite.judge.verdict import ROBOTS

ORIGINS = 1_000
MIN_DELAY_S = 5.0
CRAWL_DELAY_S = 8
RETRY_AFTER_S = 9
SLOW_S = 1.5
# How long a robots.txt is good for, so that each is asked for again and again.
TTL_S = 60.0
PAGES = 10


# One in twenty origins each, and the rest GOOD.
_NAMES = "GOOD DROPS_PAGES MISSING BUSY LIMITED SLOW DROPS_ROBOTS GARBAGE MOVED HUGE CUT_SHORT DELAYED"
Kind = Enum("Kind", _NAMES)
_KINDS = [*list(Kind)[1:], *[Kind.GOOD] * 9]
# Their robots.txt cannot be had: nothing of theirs may be fetched.
CLOSED = frozenset({Kind.BUSY, Kind.DROPS_ROBOTS, Kind.GARBAGE, Kind.CUT_SHORT})
MOVED_TO, FORBIDDEN = "/rules", "/private/x"
RULES = b"User-agent: *\nDisallow: /private\n"
BODIES = {
    Kind.HUGE: RULES + b"# filler\n" * 60_000,
    Kind.DELAYED: RULES + b"Crawl-delay: %d\n" % CRAWL_DELAY_S,
}


def kind(number: int) -> Kind:
    return _KINDS[number % len(_KINDS)]


def name(number: int) -> str:
    return f"h{number}.test"


def forbids(number: int, path: str) -> bool:
    """Whether the origin's robots.txt, or the want of one, forbids a page."""
    what = kind(number)
    return what in CLOSED or (path.startswith("/private") and what is not Kind.MISSING)


ADDRESS = "127.40.0.1"
_PAGE = b"<!doctype html><title>a page</title>"


def _ok(body: bytes, extra: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n" % (len(body), extra) + body


def _status(line: bytes, extra: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n" % (line, extra)


def answer(number: int, path: str, times: int) -> tuple[int, bytes]:
    """The status to be written down, and what is sent: nothing, for a connection that is dropped."""
    what = kind(number)
    if path not in (ROBOTS, MOVED_TO):
        return _page(what, times)
    match what:
        case Kind.MISSING:
            return 404, _status(b"404 Not Found")
        case Kind.BUSY:
            return 503, _status(b"503 Service Unavailable")
        case Kind.DROPS_ROBOTS:
            return 0, b""
        case Kind.GARBAGE:
            return 0, b"SSH-2.0-OpenSSH_9.9\r\n\r\n"
        case Kind.CUT_SHORT:
            return 0, _ok(RULES).replace(b"Length: ", b"Length: 9")
        case Kind.MOVED if path == ROBOTS:
            return 301, _status(b"301 Moved Permanently", b"Location: %s\r\n" % MOVED_TO.encode())
        case _:
            return 200, _ok(BODIES.get(what, RULES))


def _page(what: Kind, times: int) -> tuple[int, bytes]:
    if what is Kind.DROPS_PAGES and times % 2:
        return 0, b""
    if what is Kind.LIMITED and not times % 3:
        return 429, _status(b"429 Too Many Requests", b"Retry-After: %d\r\n" % RETRY_AFTER_S)
    return 200, _ok(_PAGE)


class Origins:
    """All of them; which one is asked is known by the Host field. `told` gets a line for each request."""

    def __init__(self, told: Callable[[str], object]) -> None:
        self._told = told
        self._times: Counter[int] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            at, path = time.monotonic(), head.split(" ", 2)[1]
            number = int(head.lower().partition("\nhost: h")[2].partition(".")[0])
            self._times[number] += path not in (ROBOTS, MOVED_TO)
            status, sent = answer(number, path, self._times[number])
            self._told(f"{at:.6f} {number} {path} {status}\n")
            if kind(number) is Kind.SLOW:
                await asyncio.sleep(SLOW_S)
            writer.write(sent)
            await writer.drain()
        except (OSError, EOFError, asyncio.CancelledError):
            # The other end has left, or the soak is over.
            pass
        finally:
            writer.close()


async def main(log: str) -> None:
    """Serve until standard input ends, as it does when the crawler ends."""
    with open(log, "w") as written:  # noqa: PTH123
        serving = await asyncio.start_server(Origins(written.write).serve, ADDRESS, 0, backlog=1_000)
        print(serving.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        serving.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
