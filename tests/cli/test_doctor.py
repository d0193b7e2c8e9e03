"""`polite doctor`: what it says of a header, and of the page that it names, from a server on loopback."""

import asyncio
import json

import pytest
from aiohttp import web

from polite.cli.main import main
from polite.testing import LoopClock
from tests.cli.fetch.conftest import Site


def said(header, capsys):
    status = main(["doctor", "--offline", "--json", header])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    "header",
    [
        "AcmeBot/0.1 (+https://acme.dev/bot)",
        "Mozilla/5.0 (compatible; AcmeBot/0.1; +https://acme.dev/bot)",
        "Acme-News_Bot (see https://acme.dev/bot.)",
        "AcmeBot/0.1, https://acme.dev/bot; team@acme.dev",
    ],
)
def test_a_good_header_is_well_and_what_only_the_page_could_tell_is_left_open(header, capsys):
    status, checks = said(header, capsys)
    assert (status, {check["verdict"] for check in checks}) == (0, {"ok", "yours"})
    assert [check["practice"] for check in checks if check["verdict"] == "yours"] == ["2.4", "2.5", "2.6"]


@pytest.mark.parametrize(
    ("header", "verdict", "says"),
    [
        ("My Bot/1.0 (+https://acme.dev/)", "warning", "addresses it as `my`, not as `My Bot`"),
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
        ("Acme\tBot (+https://acme.dev/)", "problem", "printable latin-1"),
    ],
)
def test_what_a_header_is_told(header, verdict, says, capsys):
    status, checks = said(header, capsys)
    of = [(check["verdict"], check["practice"]) for check in checks if says in check["text"]]
    assert of == [(verdict, "2.2")]
    assert status == (0 if verdict == "ok" else 1)
    assert "secret" not in str(checks)


WHOLE = """<html><head><link href="/ranges.json" rel="client-ranges"></head><body>
AcmeBot fetches pages for a search engine. To block it: <pre>User-agent: AcmeBot
Disallow: /</pre> Write to <a href="mailto:bot@acme.dev">us</a>.</body></html>"""


@pytest.fixture
def acme(tmp_path, monkeypatch, capsys):
    site = Site(tmp_path, capsys)
    monkeypatch.setattr(asyncio, "run", site.run_loop)
    monkeypatch.setattr("polite.compose.gate.SystemClock", LoopClock)
    yield site
    site.close()


def visited(site, capsys, *arguments):
    named = ["--resolve", f"acme.dev:{site.origin.removeprefix('http://')}", *arguments]
    status = main(["doctor", "--json", "--allow-private", *named, "AcmeBot/1.0 (+http://acme.dev/bot)"])
    checks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return status, {check["text"]: check["verdict"] for check in checks}


# The header's URL is not https, as no server of a test is.
_HTTP = "http://acme.dev/bot is not https: anyone on the way can change what it says"


@pytest.mark.parametrize(
    ("page", "robots", "status", "verdicts"),
    [
        (
            {"text": WHOLE},
            "",
            1,
            {
                "http://acme.dev/bot is there": "ok",
                "it names `AcmeBot`": "ok",
                "it has a mail address": "ok",
                "it has an example of a robots.txt": "ok",
                "it links the addresses that the crawler comes from": "ok",
            },
        ),
        (
            {"text": "Welcome."},
            "",
            1,
            {
                "http://acme.dev/bot is there": "ok",
                'it links no address ranges: add <link rel="client-ranges" href="https://yourdomain/ranges.json">': "warning",
                "it does not name `AcmeBot`": "warning",
                "it has no mail address to write to": "warning",
                "it has no robots.txt that blocks the crawler: show `User-agent: AcmeBot` and `Disallow: /`": "warning",
            },
        ),
        ({"status": 404}, "", 1, {"http://acme.dev/bot is no page: the server returned status 404": "problem"}),
        (
            {"text": WHOLE},
            "User-agent: *\nDisallow: /",
            3,
            {
                "http://acme.dev/bot is closed to the crawler it is about: disallowed by Disallow: / (line 2)": "warning"
            },
        ),
    ],
)  # fmt: skip
def test_what_a_page_is_told(page, robots, status, verdicts, acme, capsys):
    acme.pages = {"/bot": [page], "/robots.txt": [{"text": robots}]}
    ended, found = visited(acme, capsys)
    assert ended == status
    assert found.items() >= {**verdicts, _HTTP: "warning"}.items()
    bad = {text for text, verdict in found.items() if verdict in ("warning", "problem")}
    assert bad == {_HTTP, *(text for text, verdict in verdicts.items() if verdict != "ok")}


def drips(octets, pause_s):
    async def answer(request):
        assert request.headers["User-Agent"] == "AcmeBot/1.0 (+http://acme.dev/bot)"
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await asyncio.sleep(pause_s)
                await response.write(octets)
        except ConnectionError:
            return response

    return answer


def test_a_page_that_drips_has_an_end_and_of_an_endless_one_a_part_is_read(acme, capsys):
    acme.pages["/bot"] = [drips(b"x", 5.0)]
    assert visited(acme, capsys, "--timeout", "10")[0] == 3
    assert acme.took_s <= 41
    acme.pages["/bot"] = [drips(b"AcmeBot " * 8_000, 0.0)]
    status, found = visited(acme, capsys)
    assert (status, found["it names `AcmeBot`"]) == (1, "ok")
