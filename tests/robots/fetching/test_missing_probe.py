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


def broken(status: int = 500, **more: float) -> Unreachable:
    return Unreachable(Reason.SERVER_ERROR, SITE.robots_url, status, **more)


def begun(access: FetchResult, policy: RobotsPolicy = ON) -> MissingProbe | FetchResult:
    return MissingProbe.begin(SITE, access, policy, missing=NAME)


def asked(*answers: Reply | Failed, status: int = 500) -> MissingProbe | FetchResult:
    step = begun(broken(status))
    for answer in answers:
        assert isinstance(step, MissingProbe)
        step = step.next(answer)
    return step


def test_h7_a_page_that_cannot_exist_is_asked_for_and_then_the_front_page() -> None:
    for step, path in ((asked(), f"/{NAME}"), (asked(Reply(500)), "/")):
        assert isinstance(step, MissingProbe)
        assert (step.ask.target.url, step.ask.max_bytes) == (f"https://site.test:8443{path}", 1)


@pytest.mark.parametrize(("robots", "missing", "front"), [(500, 501, 200), (502, 500, 206), (599, 504, 299)])
def test_h7_5xx_for_the_one_and_2xx_for_the_other_means_no_robots_txt(robots: int, missing: int, front: int):
    inferred = Unavailable(Reason.INFERRED_MISSING, SITE.robots_url, robots, probes=2)

    assert asked(Reply(missing), Reply(front), status=robots) == inferred


@pytest.mark.parametrize(
    ("before", "page", "answers"),
    [
        ([], "a page that cannot exist", [Reply(404), Reply(200), Reply(503), Failed(Reason.TIMEOUT)]),
        ([Reply(500)], "the front page", [Reply(404), Reply(301), Reply(500), Failed(Reason.TIMEOUT)]),
    ],
)
@pytest.mark.parametrize("number", range(4))
def test_h7_any_other_answer_ends_the_inference(before, page, answers, number):
    access = asked(*before, answers[number])

    assert isinstance(access, Unreachable)
    assert (access.reason, access.status, access.probes) == (Reason.SERVER_ERROR, 500, len(before) + 1)
    assert page in access.detail


@pytest.mark.parametrize(
    "access",
    [
        Found(b"", 200, SITE.robots_url),
        Unavailable(Reason.CLIENT_ERROR, SITE.robots_url, 404),
        Unreachable(Reason.TIMEOUT, SITE.robots_url),
        Unreachable(Reason.CLIENT_ERROR, SITE.robots_url, 429),
        broken(503),
        broken(retry_after_s=9.0),
        broken(hops=1),
    ],
)
def test_h7_nothing_is_inferred_from_anything_but_a_lasting_5xx_of_the_site_itself_and_if_asked_for(access):
    step = asked()
    assert isinstance(step, MissingProbe)

    assert begun(access) is access
    assert isinstance(step.next(Reply(500), retry_after_s=60.0), Unreachable)
    assert isinstance(begun(broken(), RobotsPolicy()), Unreachable)
