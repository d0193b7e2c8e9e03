"""The demo's crawl as a picture."""

from polite.cli.demo.moments import Scribe, write
from polite.cli.demo.request_log import Hit
from polite.cli.timeline.log_entry import Kind, Moment
from polite.events import BackedOff, Granted, OriginPostponed, Refused


def test_what_is_no_request_is_noted_by_host():
    scribe = Scribe()

    for event in (
        Refused("http://a.test:80/no", "RULE", 2),
        BackedOff("http://a.test", 429, 2.0, "status 429"),
        OriginPostponed("http://b.test", 1, 5.0, "SERVER_ERROR"),
        Granted("http://a.test/", 0.0),
    ):
        scribe(event)

    assert [(each.origin, each.kind, each.for_s) for each in scribe.moments] == [
        ("a.test", Kind.REFUSED, 0.0),
        ("a.test", Kind.RESTED, 2.0),
        ("b.test", Kind.RESTED, 5.0),
    ]


def test_hits_are_pages_problems_and_robots_txt(tmp_path):
    path = tmp_path / "new" / "demo.svg"
    hits = [
        Hit(100.0, "a.test", "/robots.txt", 404),
        Hit(101.0, "a.test", "/", 200),
        Hit(102.0, "a.test", "/x", 503),
        Hit(103.0, "b.test", "/hop/a.test/1", 302),
    ]

    write(path, hits, [Moment(102.5, "a.test", Kind.REFUSED)])

    picture = path.read_text()
    assert (
        "<title>a.test: 1 page, 1 page, status 4xx or 5xx, 1 robots.txt, 1 refused by robots.txt</title>"
        in picture
    )
    assert "<title>b.test: 1 robots.txt</title>" in picture
    assert 'd="M860 105m0-7v14"' in picture  # two thirds of the way


def test_what_was_told_before_the_first_hit_begins_the_picture(tmp_path):
    path = tmp_path / "demo.svg"

    write(path, [Hit(110.0, "a.test", "/", 200)], [Moment(100.0, "b.test", Kind.REFUSED)])

    assert 'class="page" d="M1160 ' in path.read_text()


def test_a_crawl_that_never_began_is_a_picture_too(tmp_path):
    write(tmp_path / "demo.svg", [], [])

    assert (tmp_path / "demo.svg").read_text().endswith("</svg>\n")
