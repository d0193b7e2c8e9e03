"""Options of `polite fetch`: what each changes in the requests, and which values are wrong."""

import asyncio
import socket
from functools import partial

import aiohttp
import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from polite.cli.main import main
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth
from tests.cli.fetch.conftest import drop, raw
from tests.signing.verifier import AGENT, verified


@pytest.mark.parametrize(
    ("option", "page", "asked", "code", "detail"),
    [
        ("--max-pages", {"text": "a"}, 2, "MAX_PAGES", "--max-pages=2: so many pages were requested"),
        ("--max-failures", drop, 2, "MAX_FAILURES", "--max-failures=2: so many requests failed in a row"),
        ("--max-origin-bytes", {"text": "abc"}, 1, "MAX_ORIGIN_BYTES", "--max-origin-bytes=2: "),
    ],
)
def test_other_pages_of_an_origin_whose_budget_is_spent_are_given_up(option, page, asked, code, detail, site):
    urls = [f"/{number}" for number in range(6)]
    site.pages.update({url: [page] for url in urls})
    assert site.run(option, "2", *urls) == 3
    last = site.records["/5"]
    assert (len(site.paths), last["outcome"], last["code"]) == (asked, "given up", code)
    assert last["detail"].startswith(detail)


@pytest.mark.parametrize(("rule", "delay_s"), [("cap", 300), ("obey", 400)])
def test_a_long_crawl_delay_is_capped_or_obeyed(rule, delay_s, site):
    site.pages["/robots.txt"] = [{"text": "User-agent: *\nCrawl-delay: 400\n"}]
    assert site.run("--long-delay", rule, "/a", "/b") == 0
    assert site.times[1] - site.times[0] == pytest.approx(delay_s, abs=1)


def test_a_status_that_is_named_backs_the_origin_off(site):
    site.pages["/a"] = [{"status": 403}]
    assert site.run("--back-off-on", "403", "/a", "/b") == 0
    assert site.times[1] - site.times[0] >= 10


# --header


@pytest.fixture
def seen(site):
    """The header fields of each request, by path."""
    fields = {}

    def keep(path, **response):
        async def respond(request):
            fields[path] = request.headers.copy()
            return web.Response(**response)

        site.pages[path] = [respond]

    keep("/robots.txt", text="")
    site.keep = keep
    return fields


def test_fields_are_sent_with_pages_and_not_for_robots_txt(site, seen):
    site.keep("/a")
    site.run("--header", "Accept-Language: de", "--header", "accept:text/html", "/a")
    assert seen["/a"]["Accept-Language"] == "de"
    assert seen["/a"].getall("Accept") == ["text/html"]
    assert "Accept-Language" not in seen["/robots.txt"]


def test_credentials_follow_a_redirect_within_the_origin_only(site, seen):
    host = site.origin.replace("127.0.0.1", "b.test")
    site.keep("/a", status=302, headers={"Location": "/b"})
    site.keep("/b", status=302, headers={"Location": f"{host}/c"})
    site.keep("/c", status=302, headers={"Location": "/d"})
    site.keep("/d")

    site.run("--resolve", "b.test:127.0.0.1", "--header", "Cookie: id=7", "--header", "X-Any: 1", "/a")

    assert {path: fields.get("Cookie") for path, fields in seen.items() if path != "/robots.txt"} == {
        "/a": "id=7",
        "/b": "id=7",
        "/c": None,
        "/d": None,
    }
    assert seen["/d"]["X-Any"] == "1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "--header must be 'NAME: VALUE' in ASCII"),
        *((text, "--header must be") for text in (": x", "X: ", "X: a\r\nY: b", "X: \0", "X: schön")),
        ("X: " + "a" * 8_193, "at most 8192 octets, got 'X'"),
        ("user-agent: x", "--header cannot set user-agent: use --agent"),
        ("Host: x", "--header cannot set Host: it is the URL's; --resolve names its address"),
        ("Content-Length: 7", "it describes the message itself"),
        ("If-None-Match: x", "use --recrawl"),
        ("Signature: x", "use --sign"),
        ("Accept-Encoding: br", "requested in gzip"),
        *(
            (f"Authorization{rest}", "--header must be")
            for rest in (": secret\x00", " Bearer secret", "=secret")
        ),
        ("Cookie\tsecret:x", "--header must be"),
    ],
)
def test_what_cannot_be_sent_is_wrong_usage_and_no_message_shows_a_value(text, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["fetch", "--header", text, "http://a.test/"])
    err = capsys.readouterr().err
    assert (ended.value.code, said in err, "secret" in err) == (2, True, False)


# --sign


@pytest.fixture
def key(tmp_path):
    return SigningKey.make(tmp_path / "key.pem")


def test_each_request_is_signed(site, key, tmp_path, monkeypatch):
    # The site has no certificate.
    plain = partial(WebBotAuth, plain_http=True, components=["@authority", "@path"])
    monkeypatch.setattr("polite.signing.web_bot_auth.WebBotAuth", plain)
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--signature-agent-as-string", "/a"], "--signature-agent-as-string has no effect without --sign"),
        (["--sign", "key.pem", "/a"], "--sign KEY and --signature-agent URL are needed together"),
        (["--signature-agent", AGENT, "/a"], "--sign KEY and --signature-agent URL are needed together"),
        (["--status", "{port}", "/a"], "--status {port}: Address already in use; choose another port, or 0 for a free one"),
        ([], "no URLs given; name them, use --list FILE, or - to read standard input"),
        (["--log", "none/run.jsonl", "/a"], "--log none/run.jsonl: there is no folder none"),
        (["--list", "missing.txt"], "missing.txt: No such file or directory"),
        (["--list", "."], "--list . is a folder; name a file in it"),
        (["--list", "-"], "--list names a file; pass - as an argument to read standard input"),
        (["--limit", "3", "--resume", "queue"], "--limit is a limit on URLs of a list, and no URLs are given"),
        (["--retry", "all", "/a"], "--retry needs --resume FILE, the queue of an earlier run"),
        (["--change", "/a"], "--change needs --resume FILE, the queue of an earlier run"),
        (["--resume", "typo"], "--resume typo: there is no such file to continue; check its name, or pass the URLs as well"),
        (["--resume", "", "/a"], "--resume must be the name of a file, got ''"),
        (["--resume", ":memory:", "/a"], "--resume must be the name of a file, got ':memory:'"),
        (["--resume", "redis://user:secret@a.b/1", "/a"], "--resume must be the name of a file, got 'redis://a.b/1'"),
        (["--resume", ".", "/a"], "--resume . is a folder; name a file in it"),
        (["--resume", "no/such/queue", "/a"], "--resume no/such/queue: there is no folder no/such"),
        (["--resume", "text", "/a"], "text is not a queue file (file is not a database): name another file"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_sends_and_makes_nothing(arguments, said, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(b"no database at all" * 100)
    (tmp_path / "queue").touch()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert site.run(*(each.format(port=port) for each in arguments), output=False) == 2

    assert site.err == f"polite: {said.format(port=port)}\n"
    assert site.asked == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["queue", "text"]


# --status


def test_a_run_serves_its_status_page_until_it_ends(site):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, seen = listening.getsockname()[1], []

    async def look(_):
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"http://127.0.0.1:{port}/api/status") as answer,
        ):
            seen.append(await answer.json())
        return web.Response(text="a page")

    site.pages["/a"] = [look]

    assert site.run("--status", str(port), "/a", "/b") == 0

    assert f"polite: status page: http://127.0.0.1:{port}/\n" in site.err
    assert (seen[0]["frontier"]["in_flight"], seen[0]["held"][0]["url"]) == (1, f"{site.origin}/a")
    with socket.socket() as closed:
        assert closed.connect_ex(("127.0.0.1", port))


# --recrawl


def with_tag(tag, body="text", seen=None):
    """A page with an ETag, which answers a matching condition with a 304."""

    async def respond(request):
        if seen is not None:
            seen.append(request.headers.get("If-None-Match"))
        headers = {"ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(text=body, headers=headers)

    return respond


def run(site, number, *arguments):
    site.folder = site.folder.parent / f"run{number}"
    return site.run("--recrawl", str(site.folder.parent / "pages.sqlite"), *arguments)


def test_a_second_run_gets_304s_and_what_has_changed(site):
    site.pages |= {"/a": [with_tag('"1"')], "/b": [with_tag('"1"'), with_tag('W/"2"', "newer")]}
    assert (run(site, 1, "/a", "/b"), run(site, 2, "/a", "/b"), run(site, 3, "/a", "/b")) == (0, 0, 0)
    assert [site.records[path]["status"] for path in ("/a", "/b")] == [304, 304]
    site.folder = site.folder.parent / "run2"
    a, b = (site.records[path] for path in ("/a", "/b"))
    assert (a["outcome"], a["status"], a["file"], a["length"]) == ("fetched", 304, None, 0)
    assert (b["status"], (site.folder / b["file"]).read_text()) == (200, "newer")


async def _stall(request):
    response = web.StreamResponse(headers={"ETag": '"1"', "Content-Length": "9"})
    await response.prepare(request)
    await asyncio.sleep(100)
    return response


@pytest.mark.parametrize(
    ("arguments", "response"),
    [
        (("--tries", "1", "--timeout", "5"), _stall),
        (("--max-bytes", "3"), with_tag('"1"')),
        (("--tries", "1"), raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 9\r\n\r\nhalf')),
        (("--tries", "1"), raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf')),
    ], ids=["timed out", "capped", "cut short", "corrupt"],
)  # fmt: skip
def test_a_page_that_was_not_read_whole_is_requested_whole_again(site, arguments, response):
    seen = []
    site.pages["/a"] = [response, with_tag('"1"', seen=seen)]
    run(site, 1, *arguments, "/a")
    run(site, 2, "/a")
    assert (seen, site.records["/a"]["status"]) == ([None], 200)


def test_a_warc_has_a_revisit_record_for_a_304(site):
    site.pages["/a"] = [with_tag('"1"')]
    warc = site.folder.parent / "crawl.warc.gz"

    for number in (1, 2):
        run(site, number, "--warc", str(warc), "/a")

    with warc.open("rb") as file:
        found = [
            (record.rec_type, record.rec_headers.get_header("WARC-Profile"))
            for record in ArchiveIterator(file)
        ]
    assert [kind for kind, _ in found] == [
        "warcinfo",
        *["response", "request"] * 2,  # robots.txt, and the page
        "warcinfo",
        *["response", "request"],
        *["revisit", "request"],
    ]
    assert found[8][1].endswith("/revisit/server-not-modified")
