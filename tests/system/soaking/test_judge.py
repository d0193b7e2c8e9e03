"""What the soak's judge lets pass, and what it does not."""

import pytest

from docs.examples.demo.judge import ROBOTS, Request
from tests.system.soaking.judge import WARM_UP, Sample, growth, offences
from tests.system.soaking.server import answer
from tests.system.soaking.world import CLOSED, FORBIDDEN, ORIGINS, Kind, forbids, kind

SECONDS = 100.0
FLAT = [Sample(float(at), 100_000_000, 50, 1_000, 7) for at in range(0, 100, 2)]
GOOD, DELAYED, LIMITED, BUSY = (
    next(number for number in range(ORIGINS) if kind(number) is what)
    for what in (Kind.GOOD, Kind.DELAYED, Kind.LIMITED, Kind.BUSY)
)


def hits(*visits: tuple[float, str, int], origin: int = GOOD) -> list[Request]:
    """These at one origin, and one for the rules at each of the others."""
    others = [Request(0.0, number, ROBOTS, 200) for number in range(ORIGINS) if number != origin]
    return others + [Request(at, origin, path, status) for at, path, status in visits]


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


@pytest.mark.parametrize(
    ("origin", "visits", "wrong"),
    [
        (GOOD, [(0, ROBOTS, 200), (5, "/page/0", 200), (10.1, "/page/1", 200)], None),
        (GOOD, [(0, ROBOTS, 200), (4.9, "/page/0", 200)], "came 4.900 s after /robots.txt"),
        (DELAYED, [(0, ROBOTS, 200), (8, "/page/0", 200)], None),
        (DELAYED, [(0, ROBOTS, 200), (7, "/page/0", 200)], "not 8 s"),
        (LIMITED, [(0, ROBOTS, 200), (5, "/page/0", 429), (13, "/page/1", 200)], "not 9 s"),
        (GOOD, [(0, ROBOTS, 200), (5, FORBIDDEN, 200)], "disallowed"),
        (BUSY, [(0, ROBOTS, 503), (5, "/page/0", 200)], "though robots.txt answered 503"),
        (GOOD, [(0, "/page/0", 200)], "before robots.txt was known"),
    ],
)
def test_a_log_is_judged_by_the_kind_of_origin(
    origin: int, visits: list[tuple[float, str, int]], wrong: str | None
):
    found = offences(hits(*visits, origin=origin))

    assert found == [] if wrong is None else wrong in found[0]


def test_an_origin_without_requests_is_reported():
    assert "1 origins were never asked" in offences(hits())[0]


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
