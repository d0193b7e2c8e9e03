"""H7: what a page that cannot exist and the front page tell of a robots.txt that answers 5xx."""

import pytest

from polite.origin import Origin
from polite.robots.exchange import Failed, MissingProbe, Reply
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable

SITE = Origin.of("https://site.test:8443/")
NAME = "6d697373696e67"
ON = RobotsPolicy(infer_missing=True)
BROKEN = Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 500)


def begun(access: FetchResult = BROKEN, policy: RobotsPolicy = ON) -> MissingProbe | FetchResult:
    return MissingProbe.begin(SITE, access, policy, missing=NAME)


def asked(*answers: Reply | Failed, retry_after_s: float | None = None) -> MissingProbe | FetchResult:
    step = begun()
    for answer in answers:
        assert isinstance(step, MissingProbe)
        step = step.next(answer, retry_after_s=retry_after_s)
    return step


def test_h7_a_page_that_cannot_exist_is_asked_for_and_then_the_front_page() -> None:
    first = begun()
    second = asked(Reply(500))

    assert isinstance(first, MissingProbe)
    assert isinstance(second, MissingProbe)
    assert (first.ask.target.url, first.ask.max_bytes) == (f"https://site.test:8443/{NAME}", 1)
    assert (second.ask.target.url, second.ask.max_bytes) == ("https://site.test:8443/", 1)


@pytest.mark.parametrize("robots", [500, 502, 504, 599])
@pytest.mark.parametrize("missing", [500, 501])
@pytest.mark.parametrize("front", [200, 206, 299])
def test_h7_5xx_for_the_one_and_2xx_for_the_other_means_no_robots_txt(
    robots: int, missing: int, front: int
) -> None:
    step = begun(Unreachable(Reason.SERVER_ERROR, SITE.robots_url, robots))
    for answer in (Reply(missing), Reply(front)):
        assert isinstance(step, MissingProbe)
        step = step.next(answer)

    assert step == Unavailable(Reason.INFERRED_MISSING, SITE.robots_url, robots, probes=2)


@pytest.mark.parametrize("answer", [Reply(200), Reply(404), Reply(301), Reply(503), Failed(Reason.TIMEOUT)])
def test_h7_any_other_answer_for_the_page_that_cannot_exist_ends_the_inference(
    answer: Reply | Failed,
) -> None:
    access = asked(answer)

    assert isinstance(access, Unreachable)
    assert (access.reason, access.status, access.probes) == (Reason.SERVER_ERROR, 500, 1)
    assert "a page that cannot exist" in access.detail


@pytest.mark.parametrize("answer", [Reply(500), Reply(404), Reply(301), Reply(503), Failed(Reason.TIMEOUT)])
def test_h7_any_other_answer_for_the_front_page_leaves_it_unreachable(answer: Reply | Failed) -> None:
    access = asked(Reply(500), answer)

    assert isinstance(access, Unreachable)
    assert (access.reason, access.status, access.probes) == (Reason.SERVER_ERROR, 500, 2)
    assert "the front page" in access.detail


def test_h7_a_time_to_come_back_says_that_it_will_pass() -> None:
    access = asked(Reply(500), retry_after_s=60.0)

    assert isinstance(access, Unreachable)
    assert access.probes == 1


@pytest.mark.parametrize(
    "access",
    [
        Found(b"", 200, SITE.robots_url),
        Unavailable(Reason.CLIENT_ERROR, SITE.robots_url, 404),
        Unreachable(Reason.TIMEOUT, SITE.robots_url),
        Unreachable(Reason.CLIENT_ERROR, SITE.robots_url, 429),
        Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 503),
        Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 500, retry_after_s=9.0),
        Unreachable(Reason.SERVER_ERROR, "https://elsewhere.test/robots.txt", 500, hops=1),
    ],
)
def test_h7_nothing_is_inferred_from_anything_but_a_lasting_5xx_of_the_site_itself(
    access: FetchResult,
) -> None:
    assert begun(access) is access


def test_h7_nothing_is_inferred_unless_it_is_asked_for() -> None:
    assert begun(policy=RobotsPolicy()) is BROKEN
