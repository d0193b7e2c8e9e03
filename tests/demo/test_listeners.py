"""The demo's listeners, and the timeline of its crawl."""

import polite
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.request_log import Request
from polite.cli.timeline import Kind, LogEntry
from polite.events import BackedOff, Granted, OriginPostponed, Refused, RobotsFetched

REFUSED = Refused("http://a.test:8080/x", "RULE", 3)


def test_refusals_are_counted_by_line():
    counts = OutcomeCounts()

    for _ in range(2):
        counts(REFUSED)

    assert counts.refused == {"a.test": {"line 3": 2}}


def test_a_refusal_without_a_line_is_counted_by_its_reason():
    counts = OutcomeCounts()

    counts(Refused("http://a.test/", polite.Reason.UNREACHABLE.name, None))

    assert counts.refused == {"a.test": {"unreachable": 1}}


def test_of_a_robots_fetch_the_last_outcome_is_kept():
    counts = OutcomeCounts()

    for outcome, status in (("unreachable", None), ("found", 200)):
        counts(RobotsFetched("http://a.test:8080", outcome, "OK", status, 0, 0.1, 60.0))
        said = counts.robots["a.test"]
        assert said == (outcome if status is None else "found (200)")


def test_other_events_are_passed_over():
    counts = OutcomeCounts()

    counts(Granted("http://a.test/", 0.1, "http://a.test"))

    assert (counts.refused, counts.robots) == ({}, {})


def test_what_is_no_request_is_noted_by_host():
    recorder = EventRecorder()

    for event in (
        Refused("http://a.test:80/no", "RULE", 2),
        BackedOff("http://a.test", 429, 2.0, "status 429"),
        OriginPostponed("http://b.test", 1, 5.0, "SERVER_ERROR"),
        Granted("http://a.test/", 0.0, "http://a.test"),
    ):
        recorder(event)

    assert [(each.origin, each.kind, each.for_s) for each in recorder.entries] == [
        ("a.test", Kind.REFUSED, 0.0),
        ("a.test", Kind.BACKED_OFF, 2.0),
        ("b.test", Kind.BACKED_OFF, 5.0),
    ]


def test_requests_are_pages_problems_and_robots_txt(tmp_path):
    path = tmp_path / "new" / "demo.svg"
    requests = [
        Request(100.0, "a.test", "/robots.txt", 404),
        Request(101.0, "a.test", "/", 200),
        Request(102.0, "a.test", "/x", 503),
        Request(103.0, "b.test", "/hop/a.test/1", 302),
    ]

    write_timeline(path, requests, [LogEntry(102.5, "a.test", Kind.REFUSED)])

    picture = path.read_text()
    assert (
        "<title>a.test: 1 page, 1 page, status 4xx or 5xx, 1 robots.txt, 1 refused by robots.txt</title>"
        in picture
    )
    assert "<title>b.test: 1 robots.txt</title>" in picture
    assert 'd="M860 105m0-7v14"' in picture  # two thirds of the way


def test_what_was_told_before_the_first_request_begins_the_picture(tmp_path):
    path = tmp_path / "demo.svg"

    write_timeline(path, [Request(110.0, "a.test", "/", 200)], [LogEntry(100.0, "b.test", Kind.REFUSED)])

    assert 'class="page" d="M1160 ' in path.read_text()


def test_a_crawl_that_never_began_is_a_picture_too(tmp_path):
    write_timeline(tmp_path / "demo.svg", [], [])

    assert (tmp_path / "demo.svg").read_text().endswith("</svg>\n")
