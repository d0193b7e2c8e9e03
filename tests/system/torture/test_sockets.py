"""Each await of the transports is cancelled once, on real sockets: nothing else is raised, and nothing stays open."""

import asyncio
import gc
import itertools

import pytest

from polite.origin import Target
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.testing import scripted_server
from polite.transports.ftp import FtpTransport
from polite.transports.http import HttpTransport
from tests.faults.stage import RULES, moved, ok
from tests.system.torture.crawl import open_files
from tests.system.torture.saboteur import Failure, Saboteur

POLICY = FetchPolicy(allow_private=True)
LIMIT_S = 10.0
# What a socket fails with comes from the socket (tests/faults): an error thrown in past its future would be none of its own.
CANCELLED = pytest.mark.parametrize("failure", [Failure.CANCEL, Failure.CANCEL_LATE], ids=lambda f: f.name)
ANSWERS = {"the file": ok(RULES), "a redirect": moved(b"/other"), "a body cut short": ok(RULES)[:-5]}


async def asked(transport, url, saboteur):
    """What a request comes to; the transport is closed by the same task."""
    loop = asyncio.get_running_loop()
    loop.set_task_factory(saboteur)  # type: ignore[arg-type]

    async def ask() -> Reply | Failed:
        try:
            return await transport.get(Ask(Target.of(url)))
        finally:
            await transport.close()

    asking = asyncio.ensure_future(ask())
    _, stuck = await asyncio.wait([asking], timeout=LIMIT_S)
    loop.set_task_factory(None)
    assert not stuck
    (answer,) = await asyncio.gather(asking, return_exceptions=True)
    with saboteur.resting():
        # A second close finishes what the first could not.
        await transport.close()
    return answer


def expect_cancelled(answer: object, saboteur: Saboteur) -> None:
    if saboteur.victim is None:
        assert isinstance(answer, Reply | Failed), answer
    elif not isinstance(answer, Reply | Failed):
        assert isinstance(answer, asyncio.CancelledError), answer


@CANCELLED
@pytest.mark.parametrize("lie", ANSWERS.values(), ids=ANSWERS)
def test_http_leaves_nothing_open(lie: bytes, failure: Failure) -> None:
    async def main(saboteur: Saboteur) -> None:
        async with scripted_server(lie) as server:
            before = open_files()
            answer = await asked(HttpTransport("TestBot/1.0", POLICY), server.url(), saboteur)
            expect_cancelled(answer, saboteur)
            await expect_as_before(before)

    assert until_it_goes_through(main, failure) >= 3


async def expect_as_before(before: int) -> None:
    """The server's end may need a moment to see that the other has left."""
    async with asyncio.timeout(LIMIT_S):
        while open_files() > before:
            gc.collect()
            await asyncio.sleep(0)


def until_it_goes_through(main, failure: Failure) -> int:
    for at in itertools.count():
        saboteur = Saboteur(at, failure)
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            try:
                runner.run(main(saboteur))
            except BaseException as error:
                error.add_note(f"{failure} at {at}: {saboteur.struck_at}")
                raise
        if saboteur.victim is None:
            return at
    raise AssertionError


async def ftp_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def data(_: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        out.write(RULES)
        out.close()

    listening = await asyncio.start_server(data, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        for said in (b"331 who", b"230 in", b"200 binary", b"229 (|||%d|)" % port, b"150 here\r\n226 done"):
            await reader.readuntil(b"\r\n")
            writer.write(said + b"\r\n")
            await writer.drain()
        await reader.read()


@pytest.mark.slow("each await of a crawl fails once", fast=1)
@CANCELLED
def test_ftp_leaves_nothing_open(failure: Failure) -> None:
    async def main(saboteur: Saboteur) -> None:
        async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 hello\r\n")
            await ftp_server(reader, writer)

        async with scripted_server(greeted, scheme="ftp", hears=b"") as server:
            before = open_files()
            answer = await asked(FtpTransport("TestBot/1.0", POLICY), server.url(), saboteur)
            if saboteur.victim is None:
                assert answer == Reply(200, RULES)
            expect_cancelled(answer, saboteur)
            await expect_as_before(before)

    assert until_it_goes_through(main, failure) >= 6
