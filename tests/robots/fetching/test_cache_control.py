"""Cache-Control and Age, as honest and as hostile servers write them."""

import pytest

from polite.origin import Origin
from polite.robots.exchange import Exchange, Reply
from polite.robots.policy import RobotsPolicy
from polite.robots.snapshot import renewed

DAY = 86_400.0
SITE = Origin.of("https://site.test/")
POLICY = RobotsPolicy(min_ttl=300.0, max_ttl=7 * DAY)


def good_for(reply: Reply, policy: RobotsPolicy = POLICY) -> float:
    """How long the answer stands, from the wire to the snapshot."""
    exchange = Exchange.begin(SITE, policy)
    assert isinstance(exchange, Exchange)
    access = exchange.next(reply)
    assert not isinstance(access, Exchange)
    return renewed(None, access, policy, 0.0).expires_at


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    ("cache_control", "age", "seconds"),
    [
        (None, None, DAY),
        ("max-age=3600", None, 3_600.0),
        ("max-age=172800", None, 2 * DAY),
        ("max-age=3600", "600", 3_000.0),
        ("max-age=3600", "3600", 300.0),
        ("max-age=3600", "-600", 3_600.0),
        ("max-age=299", None, 300.0),
        ("max-age=301", None, 301.0),
        ("max-age=604801", None, 7 * DAY),
        ("max-age=" + "9" * 19, None, DAY),
        ("max-age=3600.5", None, DAY),
        ("max-age=", None, DAY),
        ("max-age='3600'", None, DAY),
        ('max-age="3600"', None, 3_600.0),
        (" max-age =\t3600 ", None, 3_600.0),
        ("max-age=7200, max-age=3600", None, 3_600.0),
        ("max-age=rubbish, max-age=3600", None, 3_600.0),
        ("s-maxage=60", None, DAY),
        ("s-maxage=60, max-age=3600", None, 3_600.0),
        ("no-store", None, 300.0),
        ("max-age=3600, NO-STORE", None, 300.0),
    ],
)
def test_k2_cache_control_as_servers_write_it(
    status: int, cache_control: str | None, age: str | None, seconds: float
) -> None:
    assert good_for(Reply(status, cache_control=cache_control, age=age)) == seconds


def test_k1_without_a_max_age_it_is_the_policys_time() -> None:
    assert good_for(Reply(200), RobotsPolicy(default_ttl=3_600.0)) == 3_600.0


@pytest.mark.parametrize("status", [500, 503])
def test_k2_a_failure_says_nothing_of_how_long_it_lasts_by_cache_control(status: int) -> None:
    assert good_for(Reply(status, cache_control="max-age=86400")) == 5.0


def test_k2_of_a_chain_of_redirects_the_last_answer_counts() -> None:
    exchange = Exchange.begin(SITE, POLICY)
    assert isinstance(exchange, Exchange)
    exchange = exchange.next(Reply(301, location="/there", cache_control="max-age=999"))
    assert isinstance(exchange, Exchange)
    access = exchange.next(Reply(200, cache_control="max-age=3600"))
    assert not isinstance(access, Exchange)

    assert renewed(None, access, POLICY, 0.0).expires_at == 3_600.0
