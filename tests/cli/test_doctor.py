"""`polite doctor`: what it says of a header, and of the page that it names, from a server on loopback."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from polite.cli.main import main
from polite.testing import LoopClock, VirtualTimeLoop

GOOD = "AcmeBot/0.1 (+https://acme.dev/bot)"


def said(
    header: str, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, list[dict[str, str]]]:
    status = main(["doctor", "--offline", "--json", *arguments, header])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def worst(checks: list[dict[str, str]], practice: str = "2.2") -> list[tuple[str, str]]:
    of = [(check["verdict"], check["text"]) for check in checks if check["practice"] == practice]
    return [each for each in of if each[0] in ("warning", "problem")]


@pytest.mark.parametrize(
    "header",
    [
        GOOD,
        "Mozilla/5.0 (compatible; AcmeBot/0.1; +https://acme.dev/bot)",
        "Acme-News_Bot (see https://acme.dev/bot.)",
        "AcmeBot/0.1, https://acme.dev/bot; team@acme.dev",
    ],
)
def test_a_good_header_is_well(header: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, checks = said(header, capsys)

    assert status == 0
    assert worst(checks) == []


@pytest.mark.parametrize(
    ("header", "verdict", "says"),
    [
        ("My Bot/1.0 (+https://acme.dev/)", "warning", "addresses it as `my`, not as `My Bot`"),
        ("Acme.Bot/1.0 (+https://acme.dev/)", "warning", "addresses it as `acme`, not as `Acme.Bot`"),
        ("Acmebot2/1.0 (+https://acme.dev/)", "warning", "`Acmebot2` has digits"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0", "problem", "a browser's header"),
        ("python-requests/2.34", "problem", "`python-requests` names a piece of software"),
        ("Googlebot/2.1 (+https://acme.dev/)", "problem", "a crawler that sites know"),
        ("Crawler/1.0 (+https://acme.dev/)", "warning", "`Crawler` is a name that many crawlers have"),
        ("AcmeBot/1.0", "problem", "it has no URL"),
        ("AcmeBot/1.0 (bot@acme.dev)", "warning", "it has only a mail address"),
        ("AcmeBot/1.0 (+https://example.com/bot)", "warning", "is an address of examples"),
        ("AcmeBot/1.0 (+http://acme.dev/bot)", "warning", "is not https"),
        ("AcmeBot/1.0 (+https://acme:dev/bot)", "problem", "the URL in it"),
        ("AcmeBot/1.0 (+https://user:secret@acme.dev/)", "ok", "it names a page: https://acme.dev/"),
        ("", "problem", "the User-Agent header is empty"),
        ("Acme\tBot (+https://acme.dev/)", "problem", "printable latin-1"),
    ],
)
def test_what_a_header_is_told(
    header: str, verdict: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, checks = said(header, capsys)

    of = [check for check in checks if says in check["text"]]
    assert [check["verdict"] for check in of] == [verdict]
    assert of[0]["practice"] == "2.2"
    assert status == (0 if verdict == "ok" else 1)
    assert "secret" not in str(checks)


def test_what_only_the_page_could_tell_is_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    _, checks = said(GOOD, capsys)

    open_ones = [(check["practice"], check["text"]) for check in checks if check["verdict"] == "yours"]
    assert [practice for practice, _ in open_ones] == ["2.4", "2.5", "2.6"]
    assert all("not looked for: --offline" in text for practice, text in open_ones if practice != "2.4")


WHOLE = """<html><head><link href="/ranges.json" rel="client-ranges"></head><body>
AcmeBot fetches pages for a search engine. To block it: <pre>User-agent: AcmeBot
Disallow: /</pre> Write to <a href="mailto:bot@acme.dev">us</a>.</body></html>"""


class Doctor:
    """A site, and a run of the command on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.paths: list[str] = []
        self.agents: list[str] = []
        self.took_s = 0.0

    def says(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], *arguments: str
    ) -> tuple[int, list[dict[str, str]]]:
        """Serve a site; return the exit status, and the checks of the sections that a page decides."""

        async def serve(main: Awaitable[Any]) -> Any:
            async def noted(request: web.BaseRequest) -> web.StreamResponse:
                self.paths.append(request.path)
                self.agents.append(request.headers["User-Agent"])
                return await answer(request)

            runner = web.ServerRunner(web.Server(noted))
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            # The header has a name: the port is known only now.
            resolve["acme.dev"] = f"127.0.0.1:{runner.addresses[0][1]}"
            began = asyncio.get_running_loop().time()
            try:
                return await main
            finally:
                self.took_s = asyncio.get_running_loop().time() - began
                await runner.cleanup()

        def run(main: Awaitable[Any]) -> Any:
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                return runner.run(serve(main))

        resolve: dict[str, str] = {"acme.dev": "127.0.0.1:1"}
        with self._monkeypatch.context() as patched:
            patched.setattr(asyncio, "run", run)
            patched.setattr("polite.compose.gate.SystemClock", LoopClock)
            patched.setattr("polite.cli.options.NamedHost.__call__", _set(resolve))
            header = "AcmeBot/1.0 (+http://acme.dev/bot)"
            status = main(
                ["doctor", "--json", "--allow-private", "--resolve", "acme.dev:127.0.0.1", *arguments, header]
            )
        checks = [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]
        return status, checks


def _set(resolve: dict[str, str]) -> Any:
    def call(self: Any, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.resolve = resolve

    return call


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(monkeypatch, capsys)


def serves(text: str, status: int = 200, robots: str = "", **headers: str) -> Any:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(text=robots)
        return web.Response(text=text, status=status, headers=headers, content_type="text/html")

    return answer


def verdicts(checks: list[dict[str, str]]) -> dict[str, str]:
    return {check["text"]: check["verdict"] for check in checks}


def test_a_page_that_says_it_all(doctor: Doctor) -> None:
    status, checks = doctor.says(serves(WHOLE))

    found = verdicts(checks)
    assert found["http://acme.dev/bot is there"] == "ok"
    for text in (
        "it names `AcmeBot`",
        "it has a mail address",
        "it has an example of a robots.txt",
        "it links the addresses that the crawler comes from",
    ):
        assert found[text] == "ok"
    # Only that the header's URL is not https, as no server of a test is.
    assert [text for text, verdict in found.items() if verdict in ("warning", "problem")] == [
        "http://acme.dev/bot is not https: anyone on the way can change what it says"
    ]
    assert status == 1
    assert doctor.paths == ["/robots.txt", "/bot"]
    assert set(doctor.agents) == {"AcmeBot/1.0 (+http://acme.dev/bot)"}


def test_a_page_that_is_not_there(doctor: Doctor) -> None:
    status, checks = doctor.says(serves("gone", status=404))

    assert verdicts(checks)["http://acme.dev/bot is no page: the server returned status 404"] == "problem"
    assert status == 1


def test_a_page_that_its_own_robots_txt_closes(doctor: Doctor) -> None:
    status, checks = doctor.says(serves(WHOLE, robots="User-agent: *\nDisallow: /"))

    [said] = [text for text in verdicts(checks) if "closed to the crawler it is about" in text]
    assert "disallowed by Disallow: / (line 2)" in said
    assert status == 3
    assert doctor.paths == ["/robots.txt"]


def test_a_page_that_drips_has_an_end(doctor: Doctor) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.path == "/robots.txt":
            return web.Response(text="")
        await response.prepare(request)
        while True:
            await asyncio.sleep(5)
            await response.write(b"x")

    status, _ = doctor.says(answer, "--timeout", "10")

    assert status == 3
    assert doctor.took_s <= 41


def test_of_an_endless_page_a_part_is_read(doctor: Doctor) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(text="")
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"AcmeBot " * 8_000)
        except ConnectionError:
            return response

    status, checks = doctor.says(answer)

    assert verdicts(checks)["it names `AcmeBot`"] == "ok"
    assert status == 1


def test_a_page_that_says_nothing(doctor: Doctor) -> None:
    _, checks = doctor.says(serves("Welcome."))

    said = [check["text"] for check in checks if check["verdict"] == "warning"][1:]
    assert said == [
        'it links no address ranges: add <link rel="client-ranges" href="https://yourdomain/ranges.json">',
        "it does not name `AcmeBot`",
        "it has no mail address to write to",
        "it has no robots.txt that blocks the crawler: show `User-agent: AcmeBot` and `Disallow: /`",
    ]
