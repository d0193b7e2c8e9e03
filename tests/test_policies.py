"""Options outside their limits are refused by name, value and limit."""

from dataclasses import replace

import pytest

from polite import FetchPolicy, InvalidOption, Origin, PacingPolicy, RecrawlPolicy, RobotsPolicy, dialect

INF = float("inf")
# By policy the options, and of each what it must not be.
BAD = {
    RobotsPolicy: [
        *(("refresh_ahead", 0.91), ("infer_missing", 1), ("default_ttl", 1.0), ("max_ttl", 1.0)),
        *(("retry_min", 0.0), ("retry_max", 1.0), ("unreachable_limit", -1.0), ("max_origins", 0)),
        *(("denied_statuses", frozenset({500})), ("allowed_statuses", 404)),
        *(("dialect", "rfc9309"), ("keep_stale", "no")),
    ],
    RecrawlPolicy: [("min_interval", -1.0), ("max_interval", 1.0), ("modified_share", 1.1)],
    PacingPolicy: [
        *(("min_delay", -1), ("min_delay", INF), ("max_crawl_delay", -0.1), ("concurrency", 0)),
        *(("max_waiting", 0), ("max_pages", 0), ("max_bytes", 1.5), ("max_failures", True)),
        *(("anchor", "end"), ("scopes", "origin"), ("circuit_failures", -1), ("circuit_rest", "long")),
        *(("obey_visit_time", "no"), ("hours", "1-5"), ("hours", "01:00-25:00"), ("hours", "")),
        *(("overrides", 5), ("overrides", (("https://example.com", ()),))),
    ],
    FetchPolicy: [
        *(("timeout", 0), ("max_redirects", 21), ("max_bytes", 0), ("allow_private", 1)),
        *(("allowed_networks", ["127.0.0.1/7"]), ("denied_networks", ["nowhere"])),
    ],
}


@pytest.mark.parametrize(("policy", "name", "value"), [(kind, *bad) for kind in BAD for bad in BAD[kind]])
def test_a_bad_option_is_refused_by_name(policy, name, value):
    with pytest.raises(InvalidOption, match=rf"{policy.__name__}: {name} (\(None for no limit\) )?must be"):
        policy(**{name: value})


def test_an_override_of_one_origin_follows_the_other_options() -> None:
    origin = Origin.of("https://example.com")
    policy = PacingPolicy().override("https://EXAMPLE.com:443/x", min_delay=5).override(origin, jitter=0.5)

    slower = replace(policy, backoff=60.0)

    assert (policy.at(origin).min_delay, policy.at(origin).jitter, policy.min_delay) == (5, 0.5, 1.0)
    assert (slower.at(origin).min_delay, slower.at(origin).backoff) == (5, 60.0)
    assert slower.at(Origin.of("https://other.example")) is slower
    assert slower.override(origin, min_delay=7).at(origin).min_delay == 7
    assert hash(policy) == hash(replace(policy))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_delay": -1}, "PacingPolicy: min_delay must be a finite number >= 0, got -1"),
        ({"max_waiting": 3}, "'max_waiting' cannot differ between origins; these can: min_delay"),
    ],
)
def test_what_cannot_be_at_one_origin_is_refused_by_name(options, message):
    with pytest.raises(InvalidOption, match=message):
        PacingPolicy().override("https://example.com", **options)
    with pytest.raises(InvalidOption, match=message.replace("override", "overrides")):
        PacingPolicy(overrides=((Origin.of("https://example.com"), tuple(options.items())),))


def test_the_defaults_are_the_polite_ones() -> None:
    assert (PacingPolicy().min_delay, PacingPolicy().concurrency) == (1.0, 1)
    assert not FetchPolicy().allow_private
    assert (FetchPolicy().max_redirects, FetchPolicy().max_bytes) == (5, 512_000)
    assert RobotsPolicy().dialect.name == "rfc9309"
    with pytest.raises(InvalidOption, match="google-2019"):
        dialect("google-2020")
