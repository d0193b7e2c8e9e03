"""Rulings: a policy that says one thing more about one origin costs the work of one origin."""

from dataclasses import replace

import pytest

from polite import Origin, PacingPolicy
from polite.pacing import effective_policy as rulings_module
from polite.pacing import policy as policies
from polite.pacing.effective_policy import Ruling, Rulings

HOSTS = [Origin("https", f"host{number}.example", None) for number in range(2_000)]


def of_many() -> PacingPolicy:
    return PacingPolicy(overrides=tuple((host, (("min_delay", 2.0),)) for host in HOSTS))


def test_one_override_more_checks_and_makes_nothing_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    made: list[PacingPolicy] = []
    check = policies._check

    def counted(name: str, value: object) -> None:
        checked.append(name)
        check(name, value)

    class Counted(Ruling):
        def __init__(self, policy: PacingPolicy, throttle: object) -> None:
            made.append(policy)
            super().__init__(policy, None)

    rulings = Rulings(of_many())
    monkeypatch.setattr(policies, "_check", counted)
    monkeypatch.setattr(rulings_module, "Ruling", Counted)
    changed = rulings.replace(rulings.policy.override("https://new.example", min_delay=7))
    replaced = rulings.replace(rulings.policy.override(HOSTS[0], min_delay=9))

    assert changed == {Origin.of("https://new.example")}
    assert replaced == {HOSTS[0]}
    assert checked == ["min_delay", "min_delay"]
    assert made == []
    assert rulings.of(HOSTS[0]).policy.min_delay == 9
    assert len(made) == 1


def test_replacing_a_field_checks_no_override_again(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = of_many()
    monkeypatch.setattr(policies, "_named", lambda *_: pytest.fail("checked again"))

    assert replace(policy, min_delay=3).at(HOSTS[5]).min_delay == 2.0


def test_a_ruling_follows_the_policy_that_rules_now() -> None:
    rulings = Rulings(of_many())
    assert rulings.of(HOSTS[1]).policy.backoff == 10.0

    rulings.replace(replace(rulings.policy, backoff=60.0))
    assert (rulings.of(HOSTS[1]).policy.backoff, rulings.of(HOSTS[1]).policy.min_delay) == (60.0, 2.0)

    rulings.replace(replace(rulings.policy, overrides=()))
    assert rulings.of(HOSTS[1]).policy.min_delay == 1.0
    assert rulings.uniform


def test_rulings_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulings_module, "_MOST_MADE", 3)
    rulings = Rulings(of_many())

    delays = {rulings.of(host).policy.min_delay for host in HOSTS[:10]}

    assert delays == {2.0}
    assert len(rulings._made) == 3


def test_limits_of_a_scope_need_no_ruling() -> None:
    rulings = Rulings(of_many().override(HOSTS[0], concurrency=3))

    assert (rulings.concurrency(HOSTS[0]), rulings.delay(HOSTS[0])) == (3, 2.0)
    assert (rulings.concurrency(HOSTS[1]), rulings.delay(Origin.of("https://x.example"))) == (1, 1.0)
    assert rulings._made == {}


@pytest.mark.parametrize(
    ("own", "timed", "plain", "concurrent"),
    [
        ({"min_delay": 3}, False, True, False),
        ({"jitter": 0.1}, False, False, False),
        ({"latency_factor": 2.0}, True, False, False),
        ({"concurrency": 2}, False, True, True),
        ({"jitter": 0.0, "latency_factor": 0.0, "concurrency": 1}, False, True, False),
    ],
)
def test_one_origin_decides_what_all_answers_need(
    own: policies.OriginPacing, timed: bool, plain: bool, concurrent: bool
) -> None:
    rulings = Rulings(of_many().override(HOSTS[3], **own))

    assert (rulings.timed, rulings.plain, rulings.concurrent) == (timed, plain, concurrent)


def test_the_longest_delay_is_that_of_the_slowest_origin_with_all_its_jitter() -> None:
    rulings = Rulings(
        PacingPolicy(min_delay=2).override(HOSTS[0], min_delay=40).override(HOSTS[1], jitter=0.5)
    )

    assert rulings.longest_delay_s(0.0) == 60.0
    assert Rulings(PacingPolicy(min_delay=2)).longest_delay_s(0.0) == 2.0
