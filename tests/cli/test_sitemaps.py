"""`polite sitemaps`: what it prints, what it says about files that cannot be read, and its exit status."""

import asyncio
import json

import pytest

from polite.cli.main import main
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from tests.sitemaps.support import index, urlset

SITE = "https://example.com"
FILE = urlset(
    f"<loc>{SITE}/a</loc><lastmod>2026-05-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority>"
    '<link rel="alternate" hreflang="de" href="/de"/>',
    f"<loc>{SITE}/b</loc><lastmod>2025-01-01</lastmod>",
    f"<loc>{SITE}/c</loc>",
)


@pytest.fixture
def script(monkeypatch):
    """The responses of all servers, in virtual time."""
    responses = {f"{SITE}/sitemap.xml": Reply(200, FILE.encode())}

    def run(main):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(main)

    monkeypatch.setattr(asyncio, "run", run)
    monkeypatch.setattr("polite.compose.gate.SystemClock", LoopClock)
    monkeypatch.setattr("polite.transports.http.HttpTransport", lambda *_, **__: ScriptedTransport(responses))
    return responses


def test_a_url_with_a_path_is_a_sitemap_and_since_leaves_out_what_did_not_change(script, capsys):
    script[f"{SITE}/own.xml"] = Reply(200, FILE.encode())

    assert main(["sitemaps", "--since", "2026-05-01T10:30Z", "--json", f"{SITE}/own.xml"]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "url": f"{SITE}/a",
        "lastmod": "2026-05-01T00:00:00+00:00",
        "priority": 0.8,
        "changefreq": "daily",
        "alternates": [{"url": f"{SITE}/de", "hreflang": "de", "media": None}],
        "sitemap": f"{SITE}/own.xml",
    }
    assert last["url"] == f"{SITE}/c"


def test_the_highest_status_of_all_files_counts(script, capsys):
    script[f"{SITE}/robots.txt"] = Reply(200, b"User-agent: *\nDisallow: /no\n")
    script[f"{SITE}/sitemap.xml"] = Reply(200, index(f"{SITE}/no.xml", f"{SITE}/a.xml").encode())
    script[f"{SITE}/a.xml"] = Reply(200, FILE.encode())

    assert main(["sitemaps", SITE]) == 1
    script[f"{SITE}/a.xml"] = Reply(200, FILE.replace("/c<", "/c?&<").encode())
    assert main(["sitemaps", SITE]) == 3

    printed = capsys.readouterr()
    assert printed.out.count("\n") == 3 + 2
    assert f"polite: {SITE}/no.xml: disallowed by Disallow: /no (line 2)\n" in printed.err
    assert f"polite: {SITE}/a.xml: the XML is not well-formed: " in printed.err


@pytest.mark.parametrize(
    ("url", "reply", "said"),
    [
        (f"{SITE}/sitemap.xml", Reply(404), f"{SITE}/sitemap.xml: the server returned status 404"),
        (f"{SITE}/robots.txt", Reply(503), f"{SITE}/sitemap.xml: disallowed: the server returned 5xx; robots.txt is unreachable"),
        (
            f"{SITE}/sitemap.xml",
            Failed(Reason.TIMEOUT, "no whole response within SitemapPolicy.timeout=30 s"),
            f"{SITE}/sitemap.xml: no whole response within --timeout=30 s",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(script, capsys, url, reply, said):
    script[url] = reply
    assert main(["sitemaps", SITE]) == 3
    assert capsys.readouterr().err.startswith(f"polite: {said}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no url"], "'no url' is no URL to fetch"),
        (["a.test:18931"], "did you mean http://a.test:18931?"),
        ([SITE, "https://example.org"], "sitemaps lists one site at a time, got 2 URLs"),
        (["--since", "yesterday", SITE], "--since must be a date such as"),
        (["--limit", "0", SITE], "--limit must be an integer from 1"),
    ],
)
def test_wrong_usage(script, capsys, arguments, said):
    try:
        status = main(["sitemaps", *arguments])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("named_by", ["robots.txt", "an index"])
@pytest.mark.parametrize("files", [5, 6])
def test_more_than_a_few_files_need_an_agent(files, named_by, script, capsys):
    names = [f"{SITE}/{each}.xml" for each in range(files - (named_by == "an index"))]
    script.update((name, Reply(200, urlset(f"<loc>{name}.html</loc>").encode())) for name in names)
    if named_by == "an index":
        script[f"{SITE}/sitemap.xml"] = Reply(200, index(*names).encode())
    else:
        script[f"{SITE}/robots.txt"] = Reply(200, "\n".join(f"Sitemap: {name}" for name in names).encode())

    assert main(["sitemaps", SITE]) == (0 if files == 5 else 2)

    said = "polite sitemaps of more than 5 files needs a name by which sites know your crawler: pass --agent, or set POLITE_AGENT"
    assert (said in capsys.readouterr().err) is (files == 6)
    assert main(["sitemaps", "--agent", "TestBot/1.0", SITE]) == 0
