"""A policy with overrides: each origin reads what is its own, and one that differs changes no other."""

import asyncio
from dataclasses import replace

import pytest

from polite import CustomScope, InvalidOption, Origin, PacingPolicy, ScopeLimit, Scopes
from polite.pacing.effective_policy import EffectivePolicies
from polite.testing import ScriptedTransport
from tests.gate.support import Names, visit
from tests.support import scripted_gate

HOSTS = [Origin("https", f"host{number}.example", None) for number in range(2_000)]


def of_many() -> PacingPolicy:
    return PacingPolicy(overrides=tuple((host, (("min_delay", 2.0),)) for host in HOSTS))


def test_what_differs_at_one_origin_changes_no_other_and_keeps_its_earlier_options() -> None:
    policies = EffectivePolicies(of_many())
    changed = policies.replace(policies.policy.override("https://new.example", min_delay=7))
    replaced = policies.replace(policies.policy.override(HOSTS[0], concurrency=3))
    assert (changed, replaced) == ({Origin.of("https://new.example")}, {HOSTS[0]})
    assert [policies.of(host).policy.min_delay for host in HOSTS[:2]] == [2, 2]
    assert [policies.concurrency(host) for host in HOSTS[:2]] == [3, 1]
    assert [policies.delay(host) for host in (HOSTS[0], Origin.of("https://x.example"))] == [2, 1]


def test_an_override_of_subdomains_gives_way_to_a_more_specific_one() -> None:
    policies = EffectivePolicies(PacingPolicy().override("https://*.site.test", min_delay=5, concurrency=2))
    wide = policies.policy
    changed = policies.replace(
        wide.override("https://*.b.site.test", min_delay=9).override("https://a.b.site.test", jitter=0.5)
    )

    given = {
        "https://a.b.site.test": (9, 2, 0.5),
        "https://x.b.site.test": (9, 2, 0),
        "https://x.site.test": (5, 2, 0),
        **dict.fromkeys(("https://site.test", "http://x.site.test", "https://x.site.test:444"), (1, 1, 0)),
    }
    for text, options in given.items():
        policy = policies.of(Origin.of(text)).policy
        assert (policy.min_delay, policy.concurrency, policy.jitter) == options
    # Any origin may have others by now.
    assert changed is None
    assert wide.at("https://x.site.test").min_delay == 5
    for typo in ("https://a.*.site.test", "https://*site.test", "https://*.*.test"):
        with pytest.raises(InvalidOption, match="stands for subdomains"):
            wide.override(typo, min_delay=1)


BY_SCOPE = Scopes(
    address=ScopeLimit(0, 9),
    custom=[CustomScope("customer", lambda to: "acme" if "acme" in to.url else None)],
)


@pytest.mark.virtual_time
async def test_the_most_specific_of_url_scope_and_address_range_decides_each_option() -> None:
    pacing = (
        PacingPolicy(scopes=BY_SCOPE)
        .override("192.0.2.0/24", min_delay=3, max_pages=9)
        .override("198.51.100.0/24", concurrency=2)
        .override("192.0.2.128/25", min_delay=4)
        .override("2001:db8::/32", min_delay=5)
        .override("customer acme", min_delay=6)
        .override("https://*.acme.test", min_delay=7)
    )
    names = Names(
        {
            "a.test": "192.0.2.1",
            "b.test": "192.0.2.200",
            "x.acme.test": "192.0.2.1",
            "acme.other": "198.51.100.1",
        }
    )
    expected = {
        "https://a.test": 3,
        "https://b.test": 4,
        "https://[2001:db8::1]": 5,
        "https://acme.other": 6,
        "https://x.acme.test": 7,
        "https://none.test": 1,
    }
    async with scripted_gate(ScriptedTransport(), pacing=pacing, addresses=names) as gate:
        for url, min_delay in expected.items():
            assert (await gate.explain(f"{url}/a")).pause.seconds == min_delay
        assert (
            "policy: min_delay=7 for https://*.acme.test; min_delay=6 for customer acme; min_delay=3, max_pages=9"
            in str(await gate.explain("https://x.acme.test/"))
        )
        names.addresses_of["a.test"] = "198.51.100.1"
        await asyncio.sleep(100)
        began, later = await asyncio.gather(*(visit(gate, "https://a.test/", took=50) for _ in range(2)))
        assert later - began == pytest.approx(1)
        assert (await gate.explain("https://a.test/")).pause.seconds == 1


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("192.0.2.1/24", "has host bits set"),
        ("example.com", "must be a URL, a range"),
        ("192.0.2.0/24", r"needs scopes=Scopes\(address=...\)"),
        ("domain example.com", r"needs scopes=Scopes\(domain=...\)"),
        ("customer acme", r"needs scopes=Scopes\(custom=...\)"),
    ],
)
def test_an_override_that_can_apply_to_nothing_is_refused(of: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        EffectivePolicies(PacingPolicy().override(of, min_delay=3))


def test_an_effective_policy_follows_the_policy_that_rules_now() -> None:
    policies = EffectivePolicies(of_many())
    assert policies.of(HOSTS[1]).policy.backoff == 10.0

    policies.replace(replace(policies.policy, backoff=60.0))
    assert (policies.of(HOSTS[1]).policy.backoff, policies.of(HOSTS[1]).policy.min_delay) == (60.0, 2.0)

    assert policies.replace(policies.policy) == set()
    assert policies.replace(replace(policies.policy, overrides=())) == set(HOSTS)
    assert policies.of(HOSTS[1]).policy.min_delay == 1.0
    assert policies.uniform


def test_the_longest_delay_is_that_of_the_slowest_origin_with_all_its_jitter() -> None:
    policies = EffectivePolicies(
        PacingPolicy(min_delay=2).override(HOSTS[0], min_delay=40).override(HOSTS[1], jitter=0.5)
    )
    assert policies.longest_delay_s(0.0) == 60.0
    assert EffectivePolicies(PacingPolicy(min_delay=2)).longest_delay_s(0.0) == 2.0
