"""The judge finds each kind of offence."""

from dataclasses import replace

import pytest

from docs.examples.demo.judge import judge
from docs.examples.demo.request_log import Request
from docs.examples.demo.sites import BUSY_BACK_OFF_S, HOSTS, RETRY_AFTER_S, Quirk

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
    verdicts = judge(request for requests in log.values() for request in requests)
    return [f"{verdict.host.name}: {offence}" for verdict in verdicts for offence in verdict.offences]


def _late(requests, start, by):
    """Delay all requests from `start` on by this many seconds."""
    return [*requests[:start], *(replace(request, at=request.at + by) for request in requests[start:])]


def test_a_polite_crawl_has_no_offence(log):
    assert _offences(log) == []


def test_a_short_gap_is_an_offence(log):
    log["mac.test"] = _late(log["mac.test"], 3, -0.02)

    (offence,) = _offences(log)
    assert offence == "mac.test: /page/2 came 0.290 s after /page/1 (200), not 0.3 s"


def test_a_gap_that_keeps_the_default_but_not_the_crawl_delay_is_an_offence(log):
    log["delay.test"] = _late(log["delay.test"], 4, -0.5)

    (offence,) = _offences(log)
    assert "not 1 s" in offence


def test_the_first_page_keeps_the_delay_that_robots_told(log):
    log["delay.test"] = _late(log["delay.test"], 1, -0.5)

    (offence,) = _offences(log)
    assert offence == "delay.test: / came 0.510 s after /robots.txt (200), not 1 s"


def test_a_delay_that_was_never_told_is_not_asked_for(log):
    log["half.test"] = [
        replace(request, at=number * 0.31, status=200 if number else 404)
        for number, request in enumerate(log["half.test"])
    ]

    assert _offences(log) == []


def test_the_stops_on_the_way_to_the_rules_are_spaced_as_well(log):
    log["five.test"] = _late(log["five.test"], 2, -0.2)

    (offence,) = _offences(log)
    assert "/hop/five.test/2 came 0.110 s" in offence


def test_a_stop_of_another_hosts_way_counts_as_a_hit(log):
    first = log["groups.test"][0]
    log["groups.test"].append(replace(first, at=first.at + 0.1, path="/hop/five.test/3", status=302))

    assert [offence.partition(" came")[0] for offence in _offences(log)] == [
        "groups.test: /hop/five.test/3",
        "groups.test: /",
    ]


def test_a_retry_after_that_is_ignored_is_an_offence(log):
    log["limited.test"] = _late(log["limited.test"], 4, -1.0)

    (offence,) = _offences(log)
    assert offence == "limited.test: /page/2 came 1.010 s after /page/2 (429), not 2 s"


@pytest.mark.parametrize("attempt", [1, 2])
def test_pressing_a_server_that_fails_is_an_offence(attempt, log):
    log["busy.test"] = _late(log["busy.test"], attempt, -0.5)

    (offence,) = _offences(log)
    assert offence == "busy.test: /robots.txt came 0.510 s after /robots.txt (503), not 1 s"


@pytest.mark.parametrize(("name", "status"), [("bom.test", 200), ("missing.test", 404), ("six.test", 302)])
def test_a_second_robots_fetch_is_an_offence(name, status, log):
    log[name] = [log[name][0], *_late(log[name], 0, 1.0)]

    (offence,) = _offences(log)
    assert offence == f"{name}: robots.txt fetched again after {status}"


def test_a_disallowed_page_is_an_offence(log):
    last = log["shop.test"][-1]
    log["shop.test"].append(replace(last, at=last.at + 1, path="/cart"))

    assert _offences(log) == ["shop.test: /cart was fetched, which is disallowed"]


def test_a_disallowed_page_in_another_spelling_is_an_offence(log):
    last = log["shop.test"][-1]
    log["shop.test"].append(replace(last, at=last.at + 1, path="/c%61rt", status=404))

    assert _offences(log) == ["shop.test: /c%61rt was fetched, to which no page links"]


def test_a_page_before_robots_txt_is_an_offence(log):
    robots, page, *rest = log["html.test"]
    log["html.test"] = [replace(page, at=robots.at), replace(robots, at=page.at), *rest]

    assert _offences(log) == ["html.test: / was fetched before robots.txt was known"]


def test_a_page_without_any_robots_txt_is_an_offence(log):
    del log["html.test"][0]

    assert _offences(log) == ["html.test: / was fetched before robots.txt was known"]


def test_a_page_in_the_middle_of_the_way_to_the_rules_is_an_offence(log):
    requests = log["five.test"]
    times = [request.at for request in requests]
    requests.insert(3, requests.pop(6))
    log["five.test"] = [replace(request, at=at) for request, at in zip(requests, times, strict=True)]

    assert _offences(log) == ["five.test: / was fetched before robots.txt was known"]


def test_a_page_while_robots_txt_fails_is_an_offence(log):
    del log["busy.test"][1:3]

    assert _offences(log) == ["busy.test: / was fetched though robots.txt answered 503"]


def test_pages_that_may_be_fetched_and_were_not_are_an_offence(log):
    log["slow.test"] = log["slow.test"][:-2]

    assert _offences(log) == ["slow.test: not fetched, though allowed: /page/4, /page/5"]


def test_a_page_that_was_only_refused_counts_as_not_fetched(log):
    log["limited.test"] = [
        request for request in log["limited.test"] if (request.path, request.status) != ("/page/2", 200)
    ]

    assert _offences(log) == ["limited.test: not fetched, though allowed: /page/2"]


def test_a_host_that_was_never_asked_is_an_offence(log):
    del log["huge.test"]

    (offence,) = _offences(log)
    assert offence.startswith("huge.test: not fetched, though allowed: /, /page/1")


def test_a_verdict_counts_what_the_server_saw(log):
    verdict = next(v for v in judge(log["busy.test"]) if v.host.name == "busy.test")

    assert (verdict.pages, verdict.robots) == (6, 3)
    assert verdict.shortest_gap_s == pytest.approx(0.31)


def test_the_order_in_which_hits_were_written_down_does_not_matter(log):
    log = {name: requests[::-1] for name, requests in log.items()}

    assert _offences(log) == []
