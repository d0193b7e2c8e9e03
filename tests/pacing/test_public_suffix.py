"""Registrable domains by the public suffix list."""

import sys

import pytest

import polite
from polite.pacing.scopes import registrable_domains


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("anna.github.io", "anna.github.io"),
        ("www.xn--mller-kva.eu", "xn--mller-kva.eu"),
        ("www.example.com.", "example.com"),
        ("a.b.internal", "b.internal"),
        ("localhost", "localhost"),
        ("192.0.2.1", None),
        ("[2001:db8::1]", None),
    ],
)
def test_a_hosts_domain_is_the_registered_one(host: str, domain: str | None) -> None:
    assert registrable_domains("a test")(host) == domain


async def test_without_the_list_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    pacing = polite.PacingPolicy(scopes=polite.Scopes(domain=polite.ScopeLimit()))

    with pytest.raises(polite.InvalidOption, match=r"pip install 'polite-crawl\[domains\]'"):
        async with polite.open_gate("TestBot/1.0", pacing=pacing):
            pass
