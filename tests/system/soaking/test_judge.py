"""What the soak's judge lets pass, and what it does not."""

import pytest

from tests.system.soaking.judge import WARM_UP, Hit, Sample, growth, offences, summary
from tests.system.soaking.server import answer
from tests.system.soaking.world import CLOSED, FORBIDDEN, ORIGINS, ROBOTS, Kind, forbids, kind

SECONDS = 100.0
FLAT = [Sample(float(at), 100_000_000, 50, 1_000, 7) for at in range(0, 100, 2)]
GOOD, DELAYED, LIMITED, BUSY = (
    next(number for number in range(ORIGINS) if kind(number) is what)
    for what in (Kind.GOOD, Kind.DELAYED, Kind.LIMITED, Kind.BUSY)
)


def hits(*visits: tuple[float, str, int], origin: int = GOOD) -> list[Hit]:
    """These at one origin, and one for the rules at each of the others."""
    others = [Hit(0.0, number, ROBOTS, 200) for number in range(ORIGINS) if number != origin]
    return others + [Hit(at, origin, path, status) for at, path, status in visits]


def test_a_flat_crawl_passes():
    assert growth(FLAT, SECONDS) == []


@pytest.mark.parametrize(
    ("field", "more", "told"),
    [
        ("rss", 400_000, "memory"),
        ("descriptors", 2, "descriptors"),
        ("tasks", 10, "tasks"),
        ("threads", 1, "threads"),
    ],
)
def test_what_grows_is_named(field: str, more: int, told: str):
    grown = [
        Sample(**{**vars(sample), field: getattr(sample, field) + more * number})
        for number, sample in enumerate(FLAT)
    ]

    assert [line.split()[0] for line in growth(grown, SECONDS)] == [told]


def test_what_grows_during_the_warm_up_only_passes():
    warming = [
        Sample(s.at, s.rss // 2 if s.at < WARM_UP * SECONDS else s.rss, s.descriptors, s.tasks, s.threads)
        for s in FLAT
    ]

    assert growth(warming, SECONDS) == []


def test_too_few_samples_are_no_proof():
    assert "say nothing" in growth(FLAT[:20], SECONDS)[0]


def test_a_polite_log_passes():
    assert offences(hits((0, ROBOTS, 200), (5, "/page/0", 200), (10.1, "/page/1", 200))) == []


def test_a_short_gap_is_seen():
    (wrong,) = offences(hits((0, ROBOTS, 200), (4.9, "/page/0", 200)))

    assert "came 4.900 s after /robots.txt, not 5 s" in wrong


def test_a_crawl_delay_and_a_retry_after_ask_for_more():
    assert offences(hits((0, ROBOTS, 200), (8, "/page/0", 200), origin=DELAYED)) == []
    assert "not 8 s" in offences(hits((0, ROBOTS, 200), (7, "/page/0", 200), origin=DELAYED))[0]
    limited = hits((0, ROBOTS, 200), (5, "/page/0", 429), (13, "/page/1", 200), origin=LIMITED)
    assert "not 9 s" in offences(limited)[0]


def test_what_is_forbidden_or_comes_before_the_rules_is_seen():
    assert "forbidden" in offences(hits((0, ROBOTS, 200), (5, FORBIDDEN, 200)))[0]
    assert "forbidden" in offences(hits((0, ROBOTS, 503), (5, "/page/0", 200), origin=BUSY))[0]
    assert "before robots.txt" in offences(hits((0, "/page/0", 200)))[0]


def test_an_origin_without_requests_is_reported():
    assert "1 origins were never asked" in offences(hits())[0]


def test_what_is_written_in_the_log_is_read_back():
    assert Hit.of("1.5 7 /page/1 200\n") == Hit(1.5, 7, "/page/1", 200)


def test_the_summary_counts():
    text = summary(FLAT, hits((0, ROBOTS, 200), (5, "/page/0", 404)), SECONDS)

    assert "1001 hits at 1000 origins in 100 s, 1000 of them for rules" in text
    assert "200: 1000, 404: 1" in text
    assert "threads 7 to 7" in text


@pytest.mark.parametrize("what", Kind)
def test_each_kind_of_origin_answers_as_its_rules_say(what: Kind):
    number = next(number for number in range(ORIGINS) if kind(number) is what)

    status, sent = answer(number, ROBOTS, 0)

    assert (status in (200, 301, 404)) is (what not in CLOSED)
    assert sent.startswith(b"HTTP/1.1") or what in (Kind.DROPS_ROBOTS, Kind.GARBAGE)
    assert forbids(number, FORBIDDEN) is (what is not Kind.MISSING)
    assert forbids(number, "/page/0") is (what in CLOSED)
    assert [answer(number, "/page/0", n)[0] for n in (1, 2, 3)] == {
        Kind.DROPS_PAGES: [0, 200, 0],
        Kind.LIMITED: [200, 200, 429],
    }.get(what, [200, 200, 200])
