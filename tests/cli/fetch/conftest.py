"""A site on loopback in the event loop of the run, so that both have the same virtual time."""

import asyncio
import json
import signal
import socket

import pytest
from aiohttp import web

from polite.cli.main import main
from polite.testing import LoopClock, VirtualTimeLoop

ROBOTS = "/robots.txt"
AGENT = "TestBot/1.0 (+https://example.com/bot)"


class Site:
    """A site, and a run of `polite fetch` on it.

    Attributes:
        pages: for each path, its responses in order. The last one repeats. Each is the arguments of web.Response, or a
            coroutine function.
        asked: time and path of each request.
        took_s: duration of the run (seconds).
    """

    def __init__(self, folder, capsys):
        self._listening, self._capsys = socket.create_server(("127.0.0.1", 0)), capsys
        self.origin = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.folder = folder / "pages"
        self.pages = {ROBOTS: [{"text": "User-agent: *\nDisallow: /no\n"}]}
        self.asked, self.loop, self.limit_s = [], VirtualTimeLoop, 36_000
        self.out = self.err = ""
        self.began = self.took_s = 0.0

    def run(self, *arguments, output=True, private=True, named=True):
        """Run `polite fetch`, and return its exit status. A path stands for its URL.

        Args:
            output: pass `--output`.
            private: pass `--allow-private`.
            named: pass `--agent`.
        """
        files = str(self.folder.parent)
        urls = [
            f"{self.origin}{each}" if each.startswith("/") and not each.startswith(files) else each
            for each in arguments
        ]
        folder = ["--output", str(self.folder)] if output else []
        allowed = ["--allow-private"] if private else []
        agent = ["--agent", AGENT] if named else []
        status = main(["fetch", *allowed, *agent, *folder, *urls])
        self.out, self.err = self._capsys.readouterr()
        return status

    @property
    def records(self):
        return {each["url"].removeprefix(self.origin): each for each in records_of(self)}

    @property
    def paths(self):
        return [path for _, path in self.asked if path != ROBOTS]

    @property
    def times(self):
        return [at for at, path in self.asked if path != ROBOTS]

    def run_loop(self, main):
        with asyncio.Runner(loop_factory=self.loop) as runner:
            return runner.run(self._serving(main))

    async def _serving(self, main):
        runner = web.ServerRunner(web.Server(self._respond, handler_cancellation=True))
        await runner.setup()
        self._runner = runner
        await self._listen()
        self.began = asyncio.get_running_loop().time()
        try:
            # No hostile URL may make a run endless.
            async with asyncio.timeout(self.limit_s):
                return await main
        finally:
            self.took_s = asyncio.get_running_loop().time() - self.began
            await runner.cleanup()

    async def _listen(self):
        self._listening.listen()
        self._site = web.SockSite(self._runner, self._listening.dup())
        await self._site.start()

    async def restart(self, down_s):
        """Refuse connections for so long: the port is bound, and nothing listens."""
        await self._site.stop()
        address = self._listening.getsockname()
        self._listening.close()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind(address)
        self.restarted = asyncio.ensure_future(self._come_back(down_s))

    async def _come_back(self, down_s):
        await asyncio.sleep(down_s)
        await self._listen()

    async def _respond(self, request):
        path = request.path_qs
        self.asked.append((asyncio.get_running_loop().time(), path))
        responses = self.pages.get(path, [{"text": f"page {path}"}])
        response = responses.pop(0) if len(responses) > 1 else responses[0]
        return await response(request) if callable(response) else web.Response(**response)

    def close(self):
        self._listening.close()


async def drop(request):
    request.transport.close()
    return web.Response()


def raw(octets):
    """Return a response of these octets, valid HTTP or not, which closes the connection."""

    async def respond(request):
        request.transport.write(octets)
        request.transport.close()
        return web.Response()

    return respond


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    site = Site(tmp_path, capsys)
    monkeypatch.setattr(asyncio, "run", site.run_loop)
    monkeypatch.setattr("polite.cli.fetch.command.SystemClock", LoopClock)
    yield site
    site.close()


async def interrupted(request):
    signal.raise_signal(signal.SIGINT)
    return web.Response(text="the last one")


@pytest.fixture
def queue(tmp_path):
    return str(tmp_path / "queue.sqlite")


@pytest.fixture
def prompt(site):
    """The site in real time: virtual time does not wait for the thread of the robots store."""
    site.loop = asyncio.SelectorEventLoop
    run = site.run
    site.run = lambda *arguments, **options: run("--delay", "0", *arguments, **options)
    return site


@pytest.fixture
def patient(site):
    """The site in virtual time without a limit: time passes while the robots store works."""
    site.limit_s = None
    return site


def records_of(site):
    return [json.loads(line) for line in (site.folder / "records.jsonl").read_text().splitlines()]
