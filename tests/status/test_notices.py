"""What an operator is told first."""

import pytest

from polite.status.recorder import Facts, Second, notices

WELL = Facts(
    closed=False,
    failure=None,
    ended=False,
    paused=False,
    store_away_s=None,
    waiting=5,
    silent_s=1.0,
    minute=[Second(well=50)],
    open_circuits=0,
    unreachable=0,
    wait_for_worker=0,
    late_s=0.0,
)


def test_a_crawl_that_is_well_says_so() -> None:
    assert notices(WELL) == [("info", "All is well.")]


@pytest.mark.parametrize(
    ("changed", "level", "text"),
    [
        ({"failure": "SchedulerFailed: no"}, "bad", "The frontier has failed: SchedulerFailed: no"),
        ({"closed": True}, "warn", "The gate is closed: no more turns are granted."),
        ({"ended": True}, "info", "The crawl has ended: nothing is left."),
        ({"paused": True}, "warn", "The frontier is paused: nothing is given out until resume()."),
        ({"store_away_s": 12.4}, "bad", "The shared store has not responded for 12 s."),
        ({"silent_s": 61.0}, "bad", "No permit was granted for 61 s, and 5 URLs wait."),
        ({"silent_s": 61.0, "waiting": 1}, "bad", "No permit was granted for 61 s, and 1 URL waits."),
        ({"open_circuits": 1}, "warn", "1 circuit is open."),
        ({"open_circuits": 1200}, "warn", "1,200 circuits are open."),
        ({"unreachable": 1}, "warn", "robots.txt of 1 origin is out of reach; its URLs wait."),
        ({"unreachable": 2}, "warn", "robots.txt of 2 origins is out of reach; their URLs wait."),
        (
            {"wait_for_worker": 3},
            "info",
            "3 origins wait for an idle worker: more workers would make the crawl faster.",
        ),
        (
            {"late_s": 0.7},
            "warn",
            "The event loop was late by 0.7 s in the last minute: something blocks it.",
        ),
        (
            {"minute": [Second(well=30), Second(failed=10)]},
            "bad",
            "10 of 40 requests failed in the last minute (5xx, or no response).",
        ),
        (
            {"minute": [Second(well=30, slowed=10)]},
            "bad",
            "10 of 40 responses in the last minute were 429 or 503.",
        ),
        (
            {"minute": [Second(well=300, slowed=1)]},
            "warn",
            "1 response in the last minute was 429 or 503.",
        ),
        (
            {"minute": [Second(well=300, slowed=2)]},
            "warn",
            "2 responses in the last minute were 429 or 503.",
        ),
    ],
)
def test_each_trouble_has_a_sentence(changed: dict[str, object], level: str, text: str) -> None:
    assert notices(WELL._replace(**changed)) == [(level, text)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"waiting": 0, "silent_s": 900.0},
        {"paused": True, "silent_s": 900.0},
        {"closed": True, "silent_s": 900.0},
        {"minute": []},
        {"minute": [Second(failed=9)]},
    ],
)
def test_what_is_to_be_expected_is_no_trouble(changed: dict[str, object]) -> None:
    levels = {notice.level for notice in notices(WELL._replace(**changed))}  # type: ignore[arg-type]

    assert "bad" not in levels


def test_the_gravest_comes_first() -> None:
    facts = WELL._replace(wait_for_worker=1, open_circuits=1, store_away_s=3.0)

    assert [notice.level for notice in notices(facts)] == ["bad", "warn", "info"]
