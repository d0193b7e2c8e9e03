"""`polite fetch --sign`: robots.txt, pages and redirects are signed."""

from functools import partial

import pytest
from aiohttp import web

from polite.cli.fetch import command
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth
from tests.signing.verifier import AGENT, verified


@pytest.fixture
def key(tmp_path):
    return SigningKey.make(tmp_path / "key.pem")


def test_each_request_is_signed(site, key, tmp_path, monkeypatch):
    # The site has no certificate.
    monkeypatch.setattr(
        command, "WebBotAuth", partial(WebBotAuth, plain_http=True, components=["@authority", "@path"])
    )
    seen = []

    def noting(**response):
        async def answer(request):
            got = verified(
                key, request.headers, method="GET", authority=request.host, scheme="http", path=request.path
            )
            seen.append((request.path, got.agent))
            return web.Response(**response)

        return answer

    site.pages["/robots.txt"] = [noting(text="")]
    site.pages["/a"] = [noting(status=302, headers={"Location": "/b"})]
    site.pages["/b"] = [noting(text="b")]

    assert site.run("--sign", str(tmp_path / "key.pem"), "--signature-agent", AGENT, "/a") == 0

    assert seen == [("/robots.txt", AGENT), ("/a", AGENT), ("/b", AGENT)]


def test_the_agent_is_sent_as_a_string_on_request(site, key, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "WebBotAuth", partial(WebBotAuth, plain_http=True))
    seen = []

    async def noting(request):
        seen.append(request.headers["Signature-Agent"])
        return web.Response(text="")

    site.pages["/robots.txt"] = site.pages["/a"] = [noting]
    given = ("--sign", str(tmp_path / "key.pem"), "--signature-agent", "https://bot.test")

    assert site.run(*given, "--signature-agent-as-string", "/a") == 0

    assert seen == ['"https://bot.test"'] * 2


def test_a_form_of_the_agent_needs_a_key(site):
    assert site.run("--signature-agent-as-string", "/a") == 2

    assert site.err == "polite: --signature-agent-as-string has no effect without --sign\n"
    assert site.asked == []


@pytest.mark.parametrize("arguments", [["--sign", "key.pem"], ["--signature-agent", AGENT]])
def test_a_key_and_its_url_are_given_together(site, arguments):
    assert site.run(*arguments, "/a") == 2

    assert site.err == "polite: --sign KEY and --signature-agent URL are needed together\n"
    assert site.asked == []


def test_a_key_that_cannot_be_used_is_known_before_the_first_request(site, tmp_path):
    assert site.run("--sign", str(tmp_path / "no.pem"), "--signature-agent", AGENT, "/a") == 2

    assert "no.pem': No such file" in site.err
    assert site.asked == []


def test_the_url_is_named_by_its_option(site, key, tmp_path):
    assert site.run("--sign", str(tmp_path / "key.pem"), "--signature-agent", "bot.test", "/a") == 2

    assert site.err.startswith("polite: --signature-agent is wrong: 'bot.test' is no URL")
