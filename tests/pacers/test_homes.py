"""Homes: which process may send what. Names that all processes share, and the state that goes from owner to owner."""

from base64 import b85encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidOption
from polite.origin import Origin, Target
from polite.pacers.homes import HomeNames, HomeState, SavedScope, decoded, encoded, scope_name
from polite.pacing.effective_policy import OpeningHours
from polite.pacing.scopes import ScopeName

SITE = Origin.of("https://www.site.test")


def domain_of(host: str) -> str | None:
    return None if host.startswith("[") else ".".join(host.split(".")[-2:])


class Book:
    def known(self, host: str) -> tuple[str, ...]:
        return ("192.0.2.1", "192.0.2.2") if host == "www.site.test" else ()


def test_an_origin_is_at_home_at_its_registrable_domain_or_its_host_without_one() -> None:
    names = HomeNames("domain", domain_of=domain_of)
    assert names.of_scope(SITE) == names.of_scope(ScopeName("domain", "site.test")) == "site.test"
    assert names.of_scope(Origin.of("https://[::1]/")) == "[::1]"


def test_all_urls_of_an_origin_have_the_home_that_a_function_names() -> None:
    seen: list[str] = []

    def by(target: Target) -> str:
        seen.append(target.url)
        return "all of them"

    assert HomeNames(by).of_scope(SITE) == "~ all of them"
    assert seen == ["https://www.site.test/"]


def test_with_addresses_tasks_are_at_home_at_the_first_and_turns_need_the_host_too() -> None:
    names = HomeNames("address", addresses=Book())
    assert names.of_tasks(SITE) == names.of_scope(ScopeName("address", "192.0.2.1")) == "address 192.0.2.1"
    assert names.of_scope(SITE) == "www.site.test"
    assert names.of_tasks(Origin.of("https://other.test")) == "address unknown"


def test_homes_that_cannot_be_named_are_refused() -> None:
    with pytest.raises(InvalidOption, match="public suffix list"):
        HomeNames("domain")
    with pytest.raises(InvalidOption, match=r"Scopes\(address=\.\.\.\)"):
        HomeNames("address")
    for name in ("", None):
        with pytest.raises(InvalidOption, match=r"https://www\.site\.test"):
            HomeNames(lambda _, name=name: name).of_origin(SITE)  # type: ignore[misc]


def test_opening_hours_and_divided_scopes_have_no_home() -> None:
    names = HomeNames(divided=lambda scope: scope == ScopeName("crawl", ""))
    assert names.of_scope(OpeningHours(SITE)) is None
    assert names.of_scope(ScopeName("crawl", "")) is None
    assert names.of_scope(ScopeName("customer", "acme")) == "customer acme"


@pytest.mark.parametrize("scope", [1, None, ("a", "b")])
def test_a_scope_whose_hash_another_process_does_not_know_is_refused(scope):
    with pytest.raises(InvalidOption, match="Origin, ScopeName or str"):
        scope_name(scope)


TEXTS = st.text(max_size=6) | st.text(st.sampled_from("=: %\n\x00#\ud800é"), max_size=4) | st.just("x" * 300)
SCOPES = TEXTS | st.builds(ScopeName, TEXTS, TEXTS)


@given(SCOPES, SCOPES)
def test_two_scopes_never_have_one_name(one, other):
    assert (scope_name(one) == scope_name(other)) is (one == other and type(one) is type(other))


SAVED = st.builds(
    SavedScope,
    TEXTS.map(scope_name),
    *[st.floats(0.0, 1e6)] * 2,
    st.binary(max_size=200).map(lambda memory: b85encode(memory).decode()),
    *[st.integers(0, 100)] * 2,
    st.booleans(),
    pages=st.integers(0, 10**9),
    octets=st.integers(0, 2**63),
    failed=st.integers(0, 100),
)


@pytest.mark.slow("large states")
@given(st.lists(SAVED, max_size=20), st.none() | st.floats(0.0, 1e6))
def test_a_state_is_bounded_and_what_has_no_space_delays_the_home(scopes, unclean_s):
    text, left_out_s = encoded(HomeState(tuple(scopes), unclean_s))
    state = decoded(text)
    assert text is None or len(text.encode()) <= 1_000
    assert state is not None
    told = {each.name for each in state.scopes}
    assert all(each.rest_s <= left_out_s for each in scopes if each.tells and each.name not in told)
    assert (state.unclean_s is None) == (unclean_s is None)


@given(SAVED, st.none() | st.floats(0.0, 1e6))
def test_a_state_that_is_read_says_what_was_written_and_never_less(scope, unclean_s):
    state = decoded(encoded(HomeState((scope,), unclean_s))[0])

    assert state is not None
    for read in state.scopes:
        assert read[3:] == scope[3:]
        assert scope.rest_s <= read.rest_s <= scope.rest_s + 0.002
        assert scope.delay_s <= read.delay_s <= scope.delay_s + 0.002
    assert bool(state.scopes) is scope.tells
    if unclean_s is not None and state.unclean_s is not None:
        assert unclean_s - 0.002 <= state.unclean_s <= unclean_s


NOT_UNDERSTOOD = """no JSON
[]
{"s":7}
{"s":[7]}
{"s":[[7]]}
{"s":[["a",-1]]}
{"s":[["a","b"]]}
{"s":[["a",1,1,1,1,1,1,1,1,1,1]]}
{"s":[["a",0,0,-1]]}
{"s":[["a",0,0,0.5]]}
{"s":[["a",0,0,"no memory"]]}
{"u":-1}
{"u":"x"}
{"s":[["a",NaN]]}
{"s":[["a",1e999]]}"""


@pytest.mark.parametrize("text", ["", *NOT_UNDERSTOOD.splitlines(), "[" * 100_000])
def test_a_state_that_another_version_wrote_is_not_guessed(text: str) -> None:
    assert decoded(text) is None
