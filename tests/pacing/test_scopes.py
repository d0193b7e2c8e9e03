"""The scopes of a URL beside its origin: which there are, in which order, and what holds for each."""

import sys

import pytest

import polite
from polite import CustomScope, InvalidOption, PacingPolicy, ScopeLimit, Scopes, Target
from polite.pacing.scopes import ScopeName, ScopeResolver, registrable_domains

TARGET = Target.of("https://www.shop.example.co.uk/a")


class Book:
    def known(self, host: str) -> tuple[str, ...]:
        return {"www.shop.example.co.uk": ("192.0.2.1", "192.0.2.2")}.get(host, ())


def customer(target: Target) -> str | None:
    return "acme" if "shop" in target.origin.host else None


def bound(**options):
    return ScopeResolver(
        Scopes(**options), domain_of={TARGET.origin.host: "example.co.uk"}.get, addresses=Book()
    )


def test_all_scopes_of_a_url_go_from_narrow_to_broad() -> None:
    limit = ScopeLimit()
    scopes = bound(domain=limit, address=limit, crawl=limit, custom=[CustomScope("customer", customer)])

    assert [str(scope) for scope in scopes(TARGET)] == [
        "https://www.shop.example.co.uk",
        "domain example.co.uk",
        "address 192.0.2.1",
        "address 192.0.2.2",
        "customer acme",
        "crawl",
    ]
    elsewhere = Target.of("https://192.0.2.7/")
    assert scopes(elsewhere) == (elsewhere.origin, ScopeName("crawl", ""))


def test_each_scope_has_its_own_limit_and_an_origin_the_policys() -> None:
    crawl, acme = ScopeLimit(0.0, 100), ScopeLimit(5.0)
    scopes = bound(crawl=crawl, custom=(CustomScope("customer", customer, acme),))
    assert [scopes.limit(scope) for scope in scopes(TARGET)] == [None, acme, crawl]
    assert scopes.limit(ScopeName("domain", "example.com")) is None
    assert scopes.limit("anything") is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScopeLimit(float("nan")), "ScopeLimit: delay"),
        (lambda: ScopeLimit(1.0, 0), "ScopeLimit: concurrency"),
        (lambda: Scopes(domain=2.0), "Scopes: domain"),
        (lambda: Scopes(crawl="all"), "Scopes: crawl"),
        (lambda: Scopes(custom=CustomScope("a", customer)), "Scopes: custom"),
        (lambda: Scopes(custom=[customer]), "Scopes: custom"),
        (lambda: Scopes(custom=[CustomScope("a", customer), CustomScope("a", customer)]), "each kind once"),
        (lambda: CustomScope("domain", customer), "CustomScope: kind"),
        (lambda: CustomScope("", customer), "CustomScope: kind"),
        (lambda: CustomScope("a", "by name"), "CustomScope: by"),
        (lambda: CustomScope("a", customer, 5), "CustomScope: limit"),
        (lambda: PacingPolicy(scopes=("domain",)), "PacingPolicy: scopes"),
    ],
)
def test_what_is_no_scope_is_refused_by_name(make, message):
    with pytest.raises(InvalidOption, match=message):
        make()


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        *(("a.b.example.co.uk", "example.co.uk"), ("co.uk", "co.uk"), ("anna.github.io", "anna.github.io")),
        *(("www.xn--mller-kva.eu", "xn--mller-kva.eu"), ("www.example.com.", "example.com")),
        *(("localhost", "localhost"), ("192.0.2.1", None), ("[2001:db8::1]", None)),
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
