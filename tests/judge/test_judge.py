"""`polite judge`: each kind of offence is found over sockets, a polite crawl passes, and a log is judged again."""

import asyncio
import json
import re
import signal
import sys
import urllib.request
from pathlib import Path

import aiohttp
import pytest

import polite
from polite.cli import main
from polite.integrations.aiohttp import send_once
from polite.judge import Request, practice_sites, serving
from polite.judge.report import Report, counts, read, written

ROOT = Path(__file__).resolve().parents[2]
DELAY_S = 0.05
# A crawler in a few lines: gets what it is told, one request after the other, and waits before each.
CRAWLER = """
import sys, time, urllib.request, urllib.error
base = sys.argv[1].rstrip("/")
for each in sys.argv[2:]:
    wait, _, path = each.partition("/")
    time.sleep(float(wait))
    try:
        urllib.request.urlopen(base + "/" + path, timeout=5).read()
    except urllib.error.HTTPError:
        pass
"""


def site(name):
    return [host.name for host in practice_sites()].index(name) + 1


async def body(url):
    return await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())  # noqa: S310


async def crawl(name, *steps, agent=""):
    """Send each request after so many seconds, and return what the judge counts at that site."""
    async with serving(practice_sites(agent)) as sites:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CRAWLER, sites.url(name), *steps, stderr=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 0
    report = Report.of(sites.hosts, sites.requests, DELAY_S, 0.0)
    (verdict,) = (each for host, each in report.verdicts.items() if host.name == name)
    return report, {kind: number for kind, number in counts(verdict).items() if number and kind != "missing"}


@pytest.mark.parametrize(
    ("name", "steps", "found"),
    [
        ("bom.test", ("0/robots.txt", "0.1/", "0.1/page/1"), {}),
        ("bom.test", ("0/robots.txt", "0/", "0.1/page/1"), {"short_gaps": 1}),
        ("bom.test", ("0/", "0.1/robots.txt"), {"before_robots": 1}),
        ("bom.test", ("0/robots.txt", "0.1/", "0.1/robots.txt"), {"robots_again": 1}),
        ("bom.test", ("0/robots.txt", "0.1/x/1", "0.1/x/1"), {"disallowed": 2}),
        ("bom.test", ("0/robots.txt", "0.1/x/%31?y", "0.1/x/2"), {"disallowed": 2}),
        ("practice.test", ("0/robots.txt", "2.1/private/pre%73s"), {}),
        ("practice.test", ("0/robots.txt", "2.1/private/%64iary"), {"disallowed": 1}),
        ("slow.test", ("0/robots.txt", "0.1/"), {}),
        # The redirect is followed by urllib at once, to a page that is disallowed.
        ("groups.test", ("0/robots.txt", "0.1/login"), {"after_redirect": 1, "disallowed": 1}),
        # A second request within the Retry-After is refused again.
        ("limited.test", ("0/robots.txt", "0.1/page/2", "0.1/page/1"), {"within_retry_after": 1, "refused_again": 1}),
        ("down.test", ("0/robots.txt", "0.1/"), {"within_retry_after": 1, "despite_5xx": 1}),
        ("busy.test", ("0/robots.txt", "1.1/"), {"despite_5xx": 1}),
        # Its Crawl-delay is half a second.
        ("half.test", ("0/robots.txt", "0.1/"), {"short_gaps": 1}),
    ],
)  # fmt: skip
async def test_each_kind_of_offence_is_found(name, steps, found):
    report, counted = await crawl(name, *steps)

    assert counted == found
    assert report.polite is (not found)
    assert "Python-urllib" in next(iter(report.agents))


async def test_requests_that_come_at_once_or_cannot_be_read_are_requests():
    async with serving() as sites:
        reader, writer = await asyncio.open_connection(sites.addresses["slow.test"], sites.port)
        get = "GET {} HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n"
        writer.write(get.format("/robots.txt", 1).encode())
        await asyncio.sleep(0.2)
        writer.write((get.format("/", 1) + get.format("http://slow.test/deep/1#a", 1)).encode())
        await asyncio.sleep(0.2)
        writer.write(get.format("/page/1", 70_000 * "x").encode())
        while b"400 Bad Request" not in await reader.read(10_000):
            pass
        writer.close()
    at = [request.at - sites.requests[0].at for request in sites.requests]

    assert [(request.path, request.status) for request in sites.requests] == [
        ("/robots.txt", 200), ("/", 200), ("/deep/1", 200), ("(unreadable request)", 400)
    ]  # fmt: skip
    assert at == pytest.approx([0.0, 0.2, 0.2, 0.4], abs=0.15)
    # The answer of robots.txt took half a second.
    assert Report.of(sites.hosts, sites.requests, 0.0, 0.0).counts()["before_robots"] == 3


async def test_one_site_has_a_group_of_rules_for_the_crawler_that_is_named():
    for agent in ("", "ExampleBot"):
        async with serving(practice_sites(agent)) as sites:
            rules = polite.parse(await body(sites.url("groups.test", "/robots.txt")))
        assert rules.decide("ExampleBot", "/page/1").allowed
        assert not rules.decide("ExampleBot", "/members").allowed
        assert rules.decide("Other", "/page/1").allowed is (not agent)


async def test_a_polite_crawl_passes_and_its_efficiency_is_below_one():
    hosts = [host for host in practice_sites() if host.name in ("bom.test", "limited.test", "groups.test")]
    local = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
    async with (
        serving(hosts) as sites,
        polite.open_gate("ExampleBot/1.0", fetching=local, pacing=polite.PacingPolicy(min_delay=0.1)) as gate,
        polite.open_frontier(gate) as frontier,
        aiohttp.ClientSession(connector=polite.guarded_connector(local), middlewares=[send_once]) as session,
    ):
        await frontier.put_many(sites.url(host.name, path) for host in hosts for path in host.pages)
        frontier.close()
        async for permit in frontier:
            async with permit, session.get(permit.request_url, allow_redirects=False) as response:
                permit.report(status=response.status, headers=response.headers)
                if response.status == 429:
                    permit.retry()
    report = Report.of(hosts, sites.requests, 0.1, 0.0)

    assert report.polite
    assert report.counts()["missing"] == 0
    assert report.efficiency is not None
    assert 0.3 < report.efficiency <= 1.0


def test_a_wait_for_a_site_without_pages_is_not_in_the_efficiency():
    log = [Request(at, "bom.test", path) for at, path in ((0.0, "/robots.txt"), (2.0, "/"), (4.0, "/page/1"))]
    down = [Request(at, "down.test", "/robots.txt", 503, retry_after_s=120.0) for at in (0.0, 120.0)]

    report = Report.of(practice_sites(), [*log, *down], 1.0, 0.0)

    assert (report.polite, report.seconds, report.efficiency) == (True, 120.0, 0.5)


async def test_a_page_is_a_whole_document_with_some_text():
    async with serving() as sites:
        page = (await body(sites.url("bom.test"))).decode()

    assert re.search(r"<html>.*<body>\s*<p>.{50,}</p>.*</body></html>", page, re.DOTALL)


@pytest.mark.parametrize(
    ("delay", "gap", "status"), [("1", 0.96, 0), ("1", 0.94, 1), ("0.1", 0.092, 0), ("0.1", 0.088, 1)]
)
def test_a_twentieth_of_the_delay_is_forgiven_and_10_ms(delay, gap, status, tmp_path):
    log = tmp_path / "log"
    requests = [Request(0.0, "bom.test", "/robots.txt"), Request(gap, "bom.test", "/")]
    log.write_text("".join(f"{written(request)}\n" for request in requests))

    assert main(["judge", "--log", str(log), "--delay", delay]) == status


def test_a_command_is_judged_and_its_log_again(tmp_path, capfd):
    program, log = tmp_path / "crawler.py", tmp_path / "log"
    program.write_text(
        CRAWLER.replace("sys.argv[1]", f"sys.argv[{site('bom.test')}]").replace("[2:]", "[19:]")
    )
    command = [sys.executable, str(program), "{}", "0/robots.txt", "0/x/1"]

    assert main(["judge", "--serve", "--port", "0", "--json", "--log", str(log), "--", *command]) == 1
    first = json.loads(capfd.readouterr().out)
    assert main(["judge", "--log", str(log), "--json"]) == 1
    second = json.loads(capfd.readouterr().out)
    assert main(["judge", "--log", str(log), "--delay", "0"]) == 1
    table = capfd.readouterr().out

    assert (first["polite"], first["short_gaps"], first["disallowed"]) == (False, 1, 1)
    for report in (first, second):
        report["sites"] = [each for each in report["sites"] if each.pop("site") and each["requests"]]
    assert first == second
    assert "bom.test" in table
    assert "no request came to 17 of 18 sites" in table
    assert "impolite: bom.test: /x/1 was fetched, which is disallowed\nimpolite\n" in table


@pytest.mark.parametrize("stop", ["idle", "signal"])
async def test_serving_ends_by_a_signal_or_when_nothing_comes(stop, tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "polite", "judge", "--serve", "--port", "0"),
        *(("--idle", "0.3") if stop == "idle" else ()),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    seeds = [(await process.stdout.readline()).decode().strip() for _ in practice_sites()]
    assert b"Crawl-delay: 2" in await body(f"{seeds[0]}robots.txt")
    if stop == "signal":
        process.send_signal(signal.SIGINT)
    rest = (await process.communicate())[0].decode()

    assert process.returncode == 0
    assert rest.endswith("polite\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--serve is needed, or --log FILE alone"),
        (["--log", "none"], "none: No such file"),
        (["--log", "bad"], "bad:2: it is no JSON object with at, host, path, status"),
        (["--log", "other"], "other:1: there is no site 'other.test'"),
        (["--log", "nan"], "nan:1: it is no JSON object"),
        (["--serve", "--port", "0", "--", "no-such-crawler"], "'no-such-crawler' cannot be run: "),
        (["--serve", "--port", "0", "--log", "no/log", "--", "true"], "--log no/log: No such file"),
    ],
)
def test_what_cannot_be_judged_is_told(arguments, says, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("other").write_text(written(Request(1.0, "other.test", "/")) + "\n")
    Path("nan").write_text(written(Request(float("nan"), "bom.test", "/")) + "\n")
    Path("bad").write_text(written(Request(1.0, "bom.test", "/")) + '\n{"at": 1}\n')

    assert main(["judge", *arguments]) == 2
    assert says in capfd.readouterr().err


def test_a_crawler_that_fails_or_hangs_is_told(capfd):
    failing = f"{CRAWLER}\nsys.exit(3)".replace("[1]", f"[{site('bom.test')}]").replace("[2:]", "[19:]")
    serve = ["judge", "--serve", "--port", "0", "--idle", "0.5", "--", sys.executable, "-c"]

    assert main([*serve, failing, "{}", "0/robots.txt"]) == 3
    assert "ended with status 3" in capfd.readouterr().err
    # It is ended with what it has started.
    assert main([*serve, "import subprocess; subprocess.run(['sleep', '600'])"]) == 2


def test_no_request_is_no_polite_crawl(capfd):
    assert main(["judge", "--serve", "--port", "0", "--", "true"]) == 2
    assert capfd.readouterr().out.endswith("no request came\n")


def test_a_log_is_read_as_it_was_written():
    request = Request(1.5, "bom.test", "/ü", 429, "A/1", 2.0)

    assert read(written(request)) == request
