"""gate.sitemaps, gate.tdm_file and gate.robots: what they fetch, in which turns, what counts, and what a failure means."""

import asyncio
import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest

import polite
from polite.robots.exchange import BodyEnd, Failed, Reply
from polite.robots.reason import Reason
from polite.sitemaps import SitemapFile, SitemapKind, SitemapPolicy
from polite.terms.tdm import TDM_LIMIT
from polite.testing import ScriptedTransport
from tests.gate.support import gaps
from tests.sitemaps.support import index, pages, urlset
from tests.support import TimedTransport, scripted_gate

SITE = "https://example.com"
ROBOTS, USUAL = f"{SITE}/robots.txt", f"{SITE}/sitemap.xml"


def xml(text, **fields):
    return Reply(200, text.encode(), **fields)


def named(*urls: str, rules: str = "") -> Reply:
    return Reply(
        200, f"User-agent: *\n{rules}\n".encode() + "".join(f"Sitemap: {url}\n" for url in urls).encode()
    )


async def listed(gate, site=SITE, **options):
    sitemaps = gate.sitemaps(site, **options)
    return [entry.url async for entry in sitemaps], sitemaps.files


async def of(script, **options):
    async with scripted_gate(script, pacing=polite.PacingPolicy(min_delay=0)) as gate:
        return await listed(gate, **options)


async def test_the_files_that_robots_txt_names_are_read_in_order():
    found, files = await of(
        {
            ROBOTS: named(
                f"{SITE}/b.xml", f"{SITE}/a.txt", f"{SITE}/b.xml", "gopher://example.com/s", "https://[/"
            ),
            f"{SITE}/a.txt": Reply(200, gzip.compress(f"{SITE}/text\n".encode())),
            f"{SITE}/b.xml": xml(pages(2)),
            USUAL: xml(pages(9)),
        }
    )

    assert found == [f"{SITE}/0", f"{SITE}/1", f"{SITE}/text"]
    assert files == [
        SitemapFile(f"{SITE}/b.xml", SitemapKind.URLSET, 2, status=200),
        SitemapFile(f"{SITE}/a.txt", SitemapKind.TEXT, 1, status=200),
    ]


async def test_an_index_leads_to_its_files_and_no_loop_is_followed_twice():
    script = {
        USUAL: xml(index(f"{SITE}/inner.xml", USUAL, f"{SITE}/a.xml")),
        f"{SITE}/inner.xml": xml(index(USUAL, f"{SITE}/inner.xml", f"{SITE}/deep.xml")),
        f"{SITE}/a.xml": xml(pages(1)),
        f"{SITE}/deep.xml": xml(pages(1, start=1)),
    }

    found, files = await of(script)

    assert found == [f"{SITE}/0", f"{SITE}/1"]
    assert [file.url for file in files] == [USUAL, f"{SITE}/inner.xml", f"{SITE}/a.xml", f"{SITE}/deep.xml"]
    assert [file.problem for file in files] == [None] * 4


class Endless(ScriptedTransport):
    async def get(self, ask):
        self.asked.append(ask.target.url)
        return xml(index(*(f"{SITE}/{len(self.asked)}-{each}.xml" for each in range(3))))


@pytest.mark.parametrize(
    ("limit", "fetched", "problem"),
    [
        # One file, three, and nine.
        ({}, 13, "indexes are nested deeper than SitemapPolicy.max_depth=2"),
        ({"max_files": 2}, 2, "more than SitemapPolicy.max_files=2 files"),
    ],
)
async def test_indexes_that_lead_to_ever_more_indexes_end(limit, fetched, problem):
    async with scripted_gate(Endless(), pacing=polite.PacingPolicy(min_delay=0)) as gate:
        _, files = await listed(gate, policy=SitemapPolicy(**limit))
    assert (len(files), files[-1].problem) == (fetched, problem)


async def test_a_file_on_another_host_counts_only_if_robots_txt_names_it():
    cdn, other = "https://cdn.test/index.xml", "https://other.test/x.xml"
    found, files = await of(
        {
            ROBOTS: named(cdn, USUAL),
            cdn: xml(index("https://cdn.test/a.xml", other, "https://www.example.com/w.xml")),
            "https://cdn.test/a.xml": xml(pages(1)),
            "https://www.example.com/w.xml": xml(pages(1, start=1)),
            USUAL: xml(index(other, "https://cdn.test/b.xml")),
            other: xml(pages(9)),
            "https://cdn.test/b.xml": xml(pages(9)),
        }
    )

    assert found == [f"{SITE}/0", f"{SITE}/1"]
    assert {file.url: file.skipped for file in files} == {
        cdn: 1,
        USUAL: 2,
        "https://cdn.test/a.xml": 0,
        "https://www.example.com/w.xml": 0,
    }


async def test_pages_of_other_hosts_count_only_if_the_policy_says_so():
    text = urlset(
        *(f"<loc>{url}</loc>" for url in ("https://victim.test/", "http://www.example.com/a", f"{SITE}/b"))
    )

    found, (file,) = await of({USUAL: xml(text)})
    everything, _ = await of({USUAL: xml(text)}, policy=SitemapPolicy(other_hosts=True))

    assert found == ["http://www.example.com/a", f"{SITE}/b"]
    assert (file.entries, file.skipped) == (3, 1)
    assert len(everything) == 3


async def test_since_leaves_out_what_did_not_change_and_fetches_no_such_file():
    dated = "<sitemap><loc>{}/{}.xml</loc><lastmod>{}</lastmod></sitemap>"
    text = "".join(
        dated.format(SITE, name, date) for name, date in (("old", "2026-04-30"), ("new", "2026-05-02"))
    )
    script = {
        USUAL: xml(f"<sitemapindex>{text}</sitemapindex>"),
        f"{SITE}/new.xml": xml(
            urlset(
                f"<loc>{SITE}/old</loc><lastmod>2026-04-01</lastmod>",
                f"<loc>{SITE}/same-day</loc><lastmod>2026-05-01</lastmod>",
                f"<loc>{SITE}/undated</loc>",
            )
        ),
    }

    found, files = await of(script, since=datetime(2026, 5, 1, 12, tzinfo=UTC))

    assert found == [f"{SITE}/same-day", f"{SITE}/undated"]
    assert [file.url for file in files] == [USUAL, f"{SITE}/new.xml"]


async def test_a_file_that_is_disallowed_is_not_fetched():
    transport = ScriptedTransport({ROBOTS: named(USUAL, rules="Disallow: /sitemap"), USUAL: xml(pages(1))})
    async with scripted_gate(transport) as gate:
        found, (file,) = await listed(gate)
    assert not found
    assert transport.asked == [ROBOTS]
    assert (file.disallowed, file.problem) == (True, "disallowed by Disallow: /sitemap (line 2)")


async def test_each_file_and_each_redirect_takes_a_turn():
    transport = TimedTransport(
        {
            ROBOTS: named(USUAL),
            USUAL: Reply(302, location="/index.xml"),
            f"{SITE}/index.xml": xml(index("/a.xml")),
            f"{SITE}/a.xml": Reply(301, location="https://cdn.test/a.xml"),
            "https://cdn.test/a.xml": xml(pages(1)),
        }
    )
    async with scripted_gate(transport, pacing=polite.PacingPolicy(min_delay=5.0)) as gate:
        found, files = await listed(gate)

    assert (found, transport.times) == ([f"{SITE}/0"], [0.0, 5.0, 10.0, 15.0, 15.0, 20.0])
    assert transport.asked[4] == "https://cdn.test/robots.txt"
    assert [file.problem for file in files] == [None, None]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(302), "a redirect without a Location"),
        (Reply(302, location="https://["), "a redirect to an invalid URL: "),
        (Reply(302, location="gopher://example.com/"), "a redirect to a scheme that has no transport: gopher:"),
        (Reply(302, location="http://example.com/sitemap.xml"), "a redirect from https to a scheme without encryption"),
        (Reply(302, location=USUAL), "the redirects form a loop"),
        (Reply(302, location="https://no.test/s"), "disallowed by Disallow: / (line 2)"),
        (Reply(404), "the server returned status 404"),
        (Reply(304), "the server returned status 304"),
        (Reply(200, b"<urlset>", BodyEnd.CUT_SHORT), "the file is cut short"),
        (Reply(200, b"<urlset>", BodyEnd.CAPPED), "more than SitemapPolicy.max_bytes=52428800 octets"),
        (Reply(200, b"", BodyEnd.UNKNOWN_CODING), "the body has a content coding that was not requested"),
        (Reply(200, b""), "the file is empty"),
        (Failed(Reason.ADDRESS_REFUSED, "10.0.0.1 is not public"), "10.0.0.1 is not public"),
        (Failed(Reason.CONNECTION_LOST), "the connection was closed before the response was complete"),
        (OSError("odd"), "OSError: odd"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_told_and_ends_nothing_else(reply, problem):
    script = {
        ROBOTS: named(USUAL, f"{SITE}/good.xml"),
        USUAL: reply,
        f"{SITE}/good.xml": xml(pages(1)),
        "https://no.test/robots.txt": Reply(200, b"User-agent: *\nDisallow: /"),
    }
    async with scripted_gate(
        script, pacing=polite.PacingPolicy(min_delay=0), fetching=polite.FetchPolicy(allow_downgrade=False)
    ) as gate:
        found, (bad, good) = await listed(gate)

    assert found == [f"{SITE}/0"]
    assert bad.problem.startswith(problem)
    assert good.problem is None


class Streaming(ScriptedTransport):
    async def stream(self, ask, begun, take):
        begun(Reply(200))
        await take(b"<urlset>")
        for number in range(10_000):
            await take(b"<url><loc>%s/%d</loc><x:y>%s</x:y></url>" % (SITE.encode(), number, b"x" * 5_000))
        await take(b"</urlset>")
        return Reply(200)


@pytest.mark.slow("a large body")
async def test_a_file_of_50_mb_takes_less_than_32_mib_of_memory():
    async with scripted_gate(Streaming()) as gate:
        await gate.check(SITE)
        tracemalloc.start()
        found = 0
        async for _ in gate.sitemaps(SITE):
            found += 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert found == 10_000
    assert peak < 8 << 20


FILE = f"{SITE}/.well-known/tdmrep.json"
TDM_RULES = b'[{"location": "/a/", "tdm-reservation": 1}]'


async def test_the_file_of_the_site_is_fetched_in_its_turn_and_each_call_fetches_it_again():
    transport = TimedTransport({FILE: Reply(200, TDM_RULES), ROBOTS: Reply(404)})
    async with scripted_gate(transport, pacing=polite.PacingPolicy(min_delay=5)) as gate:
        file = await gate.tdm_file(f"{SITE}/any/page?x")
        await gate.tdm_file(SITE)
        said = polite.usage((), await gate.robots(SITE), gate.agent, f"{SITE}/a/", tdm_file=file)

    assert [rule.location for rule in file.rules] == ["/a/"]
    assert said.ai_train is False
    assert transport.asked == [ROBOTS, FILE, FILE]
    assert gaps(transport.times) == [5, 5]


@pytest.mark.parametrize(
    ("reply", "problem", "reserved"),
    [
        # A site that gives no file has no rules.
        (Reply(404), "the server returned status 404", False),
        (Reply(200, b"<html>"), "no list of rules", False),
        (Reply(302), "a redirect without a Location", False),
        (Reply(302, location=FILE), "the redirects form a loop", False),
        # A file that may be there and cannot be read reserves everything.
        (Reply(503), "the server returned status 503", True),
        (Reply(429), "the server returned status 429", True),
        (Failed(Reason.CONNECTION_REFUSED, "refused"), "refused", True),
        (Reply(200, TDM_RULES, end=BodyEnd.CORRUPT), "the body's coding is corrupt", True),
        (Reply(200, TDM_RULES[:20], end=BodyEnd.CUT_SHORT), "broken JSON", True),
        (Reply(200, gzip.compress(TDM_RULES)[:-12]), "broken JSON", True),
        (Reply(200, b"\x1f\x8bno gzip"), "broken JSON", True),
        (Reply(200, b"[" + b" " * TDM_LIMIT), f"more than {TDM_LIMIT} octets", True),
        (Reply(200, gzip.compress(b"[" + b" " * 50_000_000)), f"more than {TDM_LIMIT} octets", True),
    ],
)
async def test_what_is_no_file_reserves_nothing_or_everything(reply, problem, reserved):
    async with scripted_gate({FILE: reply}) as gate:
        file = await gate.tdm_file(f"{SITE}/any/page?x")
    assert file.problem == problem
    assert [(r.location, r.reserved, r.careful) for r in file.rules] == [("/", True, True)] * reserved


async def test_a_file_that_robots_txt_disallows_is_not_fetched_and_reserves_nothing():
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nDisallow: /.well-known/\n")})
    async with scripted_gate(transport) as gate:
        file = await gate.tdm_file(SITE)
    assert (file.rules, file.problem) == ((), "disallowed by Disallow: /.well-known/ (line 2)")
    assert transport.asked == [ROBOTS]


async def test_without_a_reliable_robots_txt_nothing_is_fetched_and_everything_is_reserved():
    transport = ScriptedTransport({ROBOTS: Reply(503), FILE: Reply(200, b"[]")})
    async with scripted_gate(transport) as gate:
        assert (await gate.tdm_file(SITE)).at("/any") is not None
        assert transport.asked == [ROBOTS]
        assert await gate.robots(SITE) is None


async def test_a_transport_that_ignores_the_limit_fills_no_memory():
    class Unlimited(ScriptedTransport):
        async def stream(self, ask, begun, take):
            begun(Reply(200))
            for _ in range(200):
                await take(b"[" + b" " * 100_000)
            return Reply(200)

    async with scripted_gate(Unlimited({})) as gate:
        await gate.check(SITE)
        tracemalloc.start()
        file = await gate.tdm_file(SITE)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert file.problem == f"more than {TDM_LIMIT} octets"
    assert peak < 8 * TDM_LIMIT


async def test_the_robots_txt_that_decides_is_returned_and_fetched_once():
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nContent-Signal: ai-train=no\n")})
    async with scripted_gate(transport) as gate:
        assert (await gate.robots(f"{SITE}/a")).signals("x", "/").ai_train is False
        assert await gate.robots(f"{SITE}/b") is not None
        assert await gate.robots("https://none.example") is None
    assert transport.asked.count(ROBOTS) == 1


@pytest.mark.parametrize("keep_stale", [True, False])
async def test_the_last_good_copy_is_returned_while_a_refresh_fails_if_it_decides(keep_stale: bool):
    replies = [Reply(200, b"User-agent: *\nContent-Signal: ai-train=no\n"), Reply(503)]
    robots_policy = polite.RobotsPolicy(min_ttl=0, default_ttl=1, max_ttl=1, keep_stale=keep_stale)
    async with scripted_gate({ROBOTS: replies}, robots=robots_policy) as gate:
        await gate.robots(SITE)
        await asyncio.sleep(60)
        robots = await gate.robots(SITE)
        assert (await gate.explain(SITE)).snapshot.failures == 1

    assert (robots is not None) is keep_stale
    assert robots is None or robots.signals("x", "/").ai_train is False
