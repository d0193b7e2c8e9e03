"""--header: what may be sent, to whom, and what no message and no file shows."""

import pytest

from polite.cli.fetch.options import header, merged
from polite.cli.main import main
from polite.errors import InvalidOption


@pytest.fixture
def seen(site):
    """The header fields of each request, by path."""
    fields = {}

    def keep(path, **response):
        async def respond(request):
            from aiohttp import web

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
        (": x", "--header must be"),
        ("X: ", "--header must be"),
        ("X: a\r\nY: b", "--header must be"),
        ("X: \0", "--header must be"),
        ("X: schön", "--header must be"),
        ("X: " + "a" * 8_193, "at most 8192 octets, got 'X'"),
        ("user-agent: x", "--header cannot set user-agent: use --agent"),
        ("Host: x", "--header cannot set Host: it is the URL's; --resolve names its address"),
        ("Content-Length: 7", "it describes the message itself"),
        ("If-None-Match: x", "use --recrawl"),
        ("Signature: x", "use --sign"),
        ("Accept-Encoding: br", "requested in gzip"),
    ],
)
def test_what_cannot_be_sent_is_wrong_usage(text, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["fetch", "--header", text, "http://a.test/"])

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["Authorization: secret\x00", "Authorization Bearer secret", "Authorization=secret", "Cookie\tsecret:x"],
)
def test_a_message_shows_no_value(text):
    with pytest.raises(InvalidOption) as raised:
        header(text)

    assert "secret" not in str(raised.value)


def test_of_two_fields_with_one_name_the_last_counts():
    assert merged([("A", "1"), ("B", "2"), ("a", "3")]) == {"a": "3", "B": "2"}
