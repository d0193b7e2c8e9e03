"""A site on loopback in the event loop of the run, so that both have the same virtual time."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from aiohttp import web

from polite.cli.main import main
from polite.testing import LoopClock, VirtualTimeLoop

ROBOTS = "/robots.txt"


class Site:
    """`pages`: the responses of each path in order, the last one repeated: arguments of Response, or a coroutine function.

    `asked`: when and what; `took_s`: how long the run was; `run` is `polite fetch` on it, and gives the exit status.
    """

    def __init__(self, folder, capsys):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._capsys = capsys
        self.origin = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.folder = folder / "pages"
        self.pages = {ROBOTS: [{"text": "User-agent: *\nDisallow: /no\n"}]}
        self.asked = []
        self.loop = VirtualTimeLoop
        self.limit_s = 36_000
        self.out = self.err = ""
        self.began = self.took_s = 0.0

    def run(self, *arguments, output=True, private=True):
        """`output`: with `--output`; `private`: with `--allow-private`; a path stands for its URL."""
        files = str(self.folder.parent)
        urls = [
            f"{self.origin}{each}" if each.startswith("/") and not each.startswith(files) else each
            for each in arguments
        ]
        folder = ["--output", str(self.folder)] if output else []
        allowed = ["--allow-private"] if private else []
        status = main(["fetch", *allowed, *folder, *urls])
        self.out, self.err = self._capsys.readouterr()
        return status

    @property
    def records(self):
        """The records by path; by URL for other sites."""
        lines = (self.folder / "records.jsonl").read_text().splitlines()
        return {each["url"].removeprefix(self.origin): each for each in map(json.loads, lines)}

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
        runner = web.ServerRunner(web.Server(self._answer, handler_cancellation=True))
        await runner.setup()
        await web.SockSite(runner, self._listening.dup()).start()
        self.began = asyncio.get_running_loop().time()
        try:
            # No hostile URL may make a run endless.
            async with asyncio.timeout(self.limit_s):
                return await main
        finally:
            self.took_s = asyncio.get_running_loop().time() - self.began
            await runner.cleanup()

    async def _answer(self, request):
        path = request.path_qs
        self.asked.append((asyncio.get_running_loop().time(), path))
        answers = self.pages.get(path, [{"text": f"page {path}"}])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(request) if callable(answer) else web.Response(**answer)

    def close(self):
        self._listening.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch, capsys):
    site = Site(tmp_path, capsys)
    monkeypatch.setattr(asyncio, "run", site.run_loop)
    monkeypatch.setattr("polite.cli.fetch.command.SystemClock", LoopClock)
    yield site
    site.close()
