"""The demo: that it was polite, that it can fail, and what it prints; and its judge, which finds each kind of offence."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs.examples.demo import run
from docs.examples.demo.__main__ import main
from docs.examples.demo.crawler import HOSTS, MIN_DELAY_S
from polite.judge.sites import BUSY_S, RETRY_AFTER_S, Quirk, judge_hosts
from polite.judge.verdict import Request


@pytest.mark.slow("a crawl in real time")
def test_the_demo_crawls_sixteen_hosts_and_was_polite(capsys, tmp_path):
    picture = tmp_path / "demo.svg"

    assert main(["--timeline", str(picture)]) == 0

    out, err = capsys.readouterr()
    _, _, table = out.partition("\n\n")
    lines = {line.split()[0]: line for line in table.splitlines()[1:17]}
    assert err == ""
    assert list(lines) == [host.name for host in HOSTS]
    assert "3x found (200)" in lines["busy.test"]
    assert "1x unavailable (302)" in lines["six.test"]
    assert "line 2, line 3, line 4, line 6" in lines["shop.test"]
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    shown = readme.partition("$ ./dev demo\n...\n")[2].partition("$ ")[0]
    assert [
        line for line in re.sub(r"[\d.]+ s$", "", shown, flags=re.MULTILINE).splitlines() if line not in out
    ] == []
    assert "104 pages from 16 hosts" in shown
    assert re.search(r"<title>busy.test: \d back-off, 6 page, 3 robots.txt", picture.read_text())


async def hang(*_):
    await asyncio.Event().wait()


async def fail(*_):
    async with asyncio.TaskGroup():
        raise ValueError("a defect")


async def be_rude(_gate, session, seeds, _found):
    for path in ("", "members"):
        async with session.get(seeds[0] + path) as response:
            await response.read()


@pytest.mark.parametrize(
    ("instead", "says"),
    [
        (hang, "failed: the crawl did not finish within 0.05 s and was cancelled\n"),
        (fail, "failed: the crawl failed with ValueError('a defect')\n"),
        (be_rude, "impolite: groups.test: /members was fetched, which is disallowed"),
    ],
)
def test_a_crawl_that_is_impolite_or_fails_is_found_out(instead, says, monkeypatch, capsys):
    monkeypatch.setattr(run, "crawl", instead)
    monkeypatch.setattr(run, "LIMIT_S", 0.05 if instead is hang else 30.0)

    assert main([]) == 1
    assert says in capsys.readouterr().err


_WAY = {Quirk.MISSING: [404], Quirk.FORBIDDEN: [403], Quirk.BUSY_TWICE: [503, 503, 200]}


def _polite(host):
    way = [("/robots.txt", status) for status in _WAY.get(host.quirk, [302 if host.hops else 200])]
    way += [
        (f"/hop/{host.name}/{n}", 200 if n == host.hops else 302) for n in range(1, min(host.hops, 5) + 1)
    ]
    pages = [(path, 200) for path in host.pages if path not in host.forbidden]
    if host.quirk is Quirk.LIMITED:
        pages.insert(2, ("/page/2", 429))
    requests, at = [], 0.0
    for path, status in way + pages:
        back_off = {429: RETRY_AFTER_S, 503: BUSY_S}.get(status, 0)
        requests.append(Request(at, host.name, path, status, retry_after_s=back_off))
        at += max(MIN_DELAY_S, host.delay_s, back_off) + 0.01
    return requests


@pytest.fixture
def log():
    return {host.name: _polite(host) for host in HOSTS}


def _offences(log):
    """Merge the logs by time, as in a real crawl."""
    verdicts = judge_hosts(HOSTS, (request for requests in log.values() for request in requests), MIN_DELAY_S)
    return [
        f"{host.name}: {offence}"
        for host, verdict in verdicts.items()
        for offence in verdict.offences + verdict.incomplete
    ]


ALL_BUT_ONE = "not fetched, though allowed: /page/1, /page/2, /page/3, /page/4, /page/5"


def _late(requests, start, by):
    return [*requests[:start], *(replace(request, at=request.at + by) for request in requests[start:])]


def test_a_polite_crawl_has_no_offence_in_whatever_order_it_was_logged(log):
    assert _offences({name: requests[::-1] for name, requests in log.items()}) == []


@pytest.mark.parametrize(
    ("name", "edited", "offences"),
    [
        # Gaps that are too short. A back-off is kept whatever comes meanwhile.
        ("mac.test", lambda log: _late(log, 3, -0.02), ["/page/2 came 0.290 s after /page/1 (200), not 0.3 s"]),
        ("delay.test", lambda log: _late(log, 4, -0.5), ["/page/3 came 0.510 s after /page/2 (200), not 1 s"]),
        ("delay.test", lambda log: _late(log, 1, -0.5), ["/ came 0.510 s after /robots.txt (200), not 1 s"]),
        ("five.test", lambda log: _late(log, 2, -0.2), ["/hop/five.test/2 came 0.110 s after /hop/five.test/1 (302), not 0.3 s"]),
        ("limited.test", lambda log: _late(log, 4, -1.0), [
            f"/page/{n} came {gap} s after /page/2 (429), not 2 s" for n, gap in enumerate(("1.010", "1.320", "1.630", "1.940"), 2)
        ]),
        ("busy.test", lambda log: _late(log, 1, -0.5), ["/robots.txt came 0.510 s after /robots.txt (503), not 1 s"]),
        ("busy.test", lambda log: _late(log, 2, -0.5), [
            f"{path} came {gap} s after /robots.txt (503), not 1 s" for path, gap in (("/robots.txt", "0.510"), ("/", "0.820"))
        ]),
        # A second fetch of robots.txt.
        ("bom.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 200"]),
        ("missing.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 404"]),
        ("six.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 302"]),
        # What may not be fetched, or not yet; five.test has a page among the redirects to its rules.
        ("shop.test", lambda log: [*log, replace(log[-1], at=99, path="/cart")], ["/cart was fetched, which is disallowed"]),
        ("shop.test", lambda log: [*log, replace(log[-1], at=99, path="/c%61rt")], ["/c%61rt was fetched, to which no page links"]),
        ("five.test", lambda log: [
            replace(log[number], at=each.at) for number, each in zip([0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 10, 11], log, strict=True)
        ], ["/ was fetched before robots.txt was known"]),
        ("html.test", lambda log: log[1:2], ["/ was fetched before robots.txt was known", ALL_BUT_ONE]),
        ("busy.test", lambda log: [log[0], *log[3:4]], ["/ was fetched while robots.txt answered a 5xx", ALL_BUT_ONE]),
        # Pages that may be fetched, and were not.
        ("huge.test", lambda _: [], ["not fetched, though allowed: /, /page/1, /page/2, /page/3, /page/4, /page/5"]),
        ("slow.test", lambda log: log[:-2], ["not fetched, though allowed: /page/4, /page/5"]),
        ("limited.test", lambda log: [each for each in log if (each.path, each.status) != ("/page/2", 200)], [
            "not fetched, though allowed: /page/2"
        ]),
    ],
)  # fmt: skip
def test_each_offence_is_found(name, edited, offences, log):
    log[name] = edited(log[name])

    assert _offences(log) == [f"{name}: {offence}" for offence in offences]
