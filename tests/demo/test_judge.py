"""The judge finds each kind of offence."""

from dataclasses import replace

import pytest

from docs.examples.demo.judge import Expected, Request, judge
from docs.examples.demo.sites import BUSY_BACK_OFF_S, HOSTS, RETRY_AFTER_S, Quirk, judge_hosts

_WAY = {
    Quirk.MISSING: [404],
    Quirk.FORBIDDEN: [403],
    Quirk.BUSY_TWICE: [503, 503, 200],
}


def _polite(host):
    """Return the log of a polite crawl of one host, each request a little later than necessary."""
    way = [("/robots.txt", status) for status in _WAY.get(host.quirk, [302 if host.hops else 200])]
    way += [
        (f"/hop/{host.name}/{n}", 200 if n == host.hops else 302) for n in range(1, min(host.hops, 5) + 1)
    ]
    pages = [(path, 200) for path in host.pages if path not in host.forbidden]
    if host.quirk is Quirk.LIMITED:
        pages.insert(2, ("/page/2", 429))
    requests, at = [], 0.0
    for path, status in way + pages:
        requests.append(Request(at, host.name, path, status))
        at += (
            max(host.delay_s, RETRY_AFTER_S if status == 429 else 0, BUSY_BACK_OFF_S if status == 503 else 0)
            + 0.01
        )
    return requests


@pytest.fixture
def log():
    """A log of a polite crawl, by host."""
    return {host.name: _polite(host) for host in HOSTS}


def _offences(log):
    """Merge the logs by time, as in a real crawl."""
    verdicts = judge_hosts(request for requests in log.values() for request in requests)
    return [f"{host.name}: {offence}" for host, verdict in verdicts.items() for offence in verdict.offences]


def _late(requests, start, by):
    """Delay all requests from `start` on by this many seconds."""
    return [*requests[:start], *(replace(request, at=request.at + by) for request in requests[start:])]


def test_a_polite_crawl_has_no_offence_in_whatever_order_it_was_logged(log):
    assert _offences({name: requests[::-1] for name, requests in log.items()}) == []


@pytest.mark.parametrize(
    ("name", "start", "by", "offence"),
    [
        ("mac.test", 3, -0.02, "/page/2 came 0.290 s after /page/1 (200), not 0.3 s"),
        ("delay.test", 4, -0.5, "/page/3 came 0.510 s after /page/2 (200), not 1 s"),
        ("delay.test", 1, -0.5, "/ came 0.510 s after /robots.txt (200), not 1 s"),
        ("five.test", 2, -0.2, "/hop/five.test/2 came 0.110 s after /hop/five.test/1 (302), not 0.3 s"),
        ("limited.test", 4, -1.0, "/page/2 came 1.010 s after /page/2 (429), not 2 s"),
        ("busy.test", 1, -0.5, "/robots.txt came 0.510 s after /robots.txt (503), not 1 s"),
        ("busy.test", 2, -0.5, "/robots.txt came 0.510 s after /robots.txt (503), not 1 s"),
    ],
)
def test_a_short_gap_is_an_offence(name, start, by, offence, log):
    log[name] = _late(log[name], start, by)

    first, *others = _offences(log)
    assert first == f"{name}: {offence}"
    if name == "limited.test":  # a back-off is kept whatever comes meanwhile
        assert others[0] == "limited.test: /page/3 came 1.320 s after /page/2 (429), not 2 s"


def test_a_redirect_to_the_rules_of_another_host_counts_as_a_request(log):
    first = log["groups.test"][0]
    log["groups.test"].append(replace(first, at=first.at + 0.1, path="/hop/five.test/3", status=302))

    assert [offence.partition(" came")[0] for offence in _offences(log)] == [
        "groups.test: /hop/five.test/3",
        "groups.test: /",
    ]


@pytest.mark.parametrize(("name", "status"), [("bom.test", 200), ("missing.test", 404), ("six.test", 302)])
def test_a_second_robots_fetch_is_an_offence(name, status, log):
    log[name] = [log[name][0], *_late(log[name], 0, 1.0)]

    assert _offences(log) == [f"{name}: robots.txt fetched again after {status}"]


def test_what_may_not_be_fetched_or_not_yet_is_an_offence(log):
    last = log["shop.test"][-1]
    log["shop.test"] += [
        replace(last, at=last.at + n, path=path) for n, path in ((1, "/cart"), (2, "/c%61rt"))
    ]
    times = [request.at for request in log["five.test"]]
    order = [0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 10, 11]  # a page among the redirects to the rules
    log["five.test"] = [
        replace(log["five.test"][number], at=at) for number, at in zip(order, times, strict=True)
    ]
    del log["html.test"][0]
    del log["busy.test"][1:3]

    assert sorted(_offences(log)) == [
        "busy.test: / was fetched though robots.txt answered 503",
        "five.test: / was fetched before robots.txt was known",
        "html.test: / was fetched before robots.txt was known",
        "shop.test: /c%61rt was fetched, to which no page links",
        "shop.test: /cart was fetched, which is disallowed",
    ]


def test_pages_that_may_be_fetched_and_were_not_are_an_offence(log):
    log["slow.test"] = log["slow.test"][:-2]
    log["limited.test"] = [
        request for request in log["limited.test"] if (request.path, request.status) != ("/page/2", 200)
    ]
    del log["huge.test"]

    refused, slow, never = _offences(log)
    assert refused == "limited.test: not fetched, though allowed: /page/2"
    assert slow == "slow.test: not fetched, though allowed: /page/4, /page/5"
    assert never.startswith("huge.test: not fetched, though allowed: /, /page/1")


def test_a_verdict_counts_what_the_server_saw():
    requests = [
        Request(0, 1, "/robots.txt"),
        Request(0.4985, 1, "/a"),
        Request(1.498, 1, "/a", sender="second"),
        Request(1.9975, 1, "/b"),
    ]

    verdict = judge(Expected(0.5, pages=["/a", "/c"], tolerance_s=0.001), requests)

    assert verdict.gaps == pytest.approx((0.4985, 0.9995, 0.4995))
    assert (verdict.robots, verdict.pages) == (1, {"/a": 2, "/b": 1})
    assert verdict.short == ("/a came 0.498 s after /robots.txt (200), not 0.5 s",)
    assert verdict.shortfall_s == pytest.approx(0.0015)
    assert (verdict.unwanted, verdict.missing, verdict.early) == (("/b",), ("/c",), ())
    # Where no pages are listed, any allowed one may be fetched.
    expected = Expected(0.5, disallows=lambda path: path == "/b", robots_once=False)
    assert judge(expected, requests[::2]).offences == ()
    assert judge(expected, [requests[0], requests[3]]).offences == ("/b was fetched, which is disallowed",)
