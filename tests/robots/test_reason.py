"""Reasons: each says which option changes it, and each such option is there."""

import inspect
from dataclasses import fields

import pytest

import polite
from polite.robots.reason import Reason

POLICIES = {policy.__name__: policy for policy in (polite.RobotsPolicy, polite.FetchPolicy)}


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_the_option_of_a_reason_is_an_option_there_is(reason: Reason) -> None:
    policy, _, field = reason.option.partition(".")

    if policy in POLICIES:
        assert field in {each.name for each in fields(POLICIES[policy])}
    else:
        assert reason.option in {"open_gate(transports=...)", "open_gate(signer=...)"}
        option = reason.option.removeprefix("open_gate(").removesuffix("=...)")
        assert option in inspect.signature(polite.open_gate).parameters


def test_only_hostile_reasons_raise_an_alarm() -> None:
    assert {reason for reason in Reason if reason.hostile} == {
        Reason.ADDRESS_REFUSED,
        Reason.REDIRECT_UNSAFE,
    }


def test_what_only_an_option_changes_cannot_pass_by_waiting() -> None:
    lasting = {reason for reason in Reason if not reason.may_pass}

    assert lasting == {
        Reason.ADDRESS_REFUSED,
        Reason.PROXY_REFUSED,
        Reason.REDIRECT_DOWNGRADE,
        Reason.REDIRECT_SCHEME,
        Reason.REDIRECT_UNSAFE,
        Reason.SCHEME_UNKNOWN,
    }
    assert Reason.UNREACHABLE_TOO_LONG.may_pass
