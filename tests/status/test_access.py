"""Who may see the page: loopback, tokens, the Host header, requests of other sites."""

import pytest

from polite.errors import InvalidOption
from polite.status.server import HEADERS, Access, is_loopback

TOKEN = "a-token-of-enough-characters"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert Access(host, None).allows(None, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "localhost.example.com"])
def test_any_other_address_needs_a_token(host: str) -> None:
    with pytest.raises(InvalidOption, match="give a token of at least 16 characters, or listen at 127.0.0.1"):
        Access(host, None)

    assert not Access(host, TOKEN).allows(None, None)


@pytest.mark.parametrize("token", ["short", "x" * 1_025, "with a space in it", "umlautäöüäöüäöüäöü", "", 7])
def test_a_token_is_checked_and_never_shown(token: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        Access("127.0.0.1", token)

    assert str(token) not in str(raised.value) or token in ("", 7)


@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Basic {TOKEN}", False),
        (f"Bearer {TOKEN}x", False),
        (TOKEN, False),
        ("Bearer ", False),
        ("Bearer \udcff", False),
    ],
)
def test_a_script_sends_the_token(authorization: str, allowed: bool) -> None:
    assert Access("0.0.0.0", TOKEN).allows(authorization, None) is allowed


def test_a_browser_sends_what_it_got_for_the_token() -> None:
    access, other = Access("0.0.0.0", TOKEN), Access("0.0.0.0", TOKEN)

    assert access.allows(None, access.granted)
    assert not access.allows(None, other.granted)
    assert not access.allows(None, TOKEN)
    assert TOKEN not in access.granted


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("127.0.0.1:8080", True),
        ("127.0.0.1", True),
        ("localhost:9999", True),
        ("LOCALHOST", True),
        ("[::1]:8080", True),
        ("status.example.com", True),
        ("STATUS.example.com:443", True),
        ("evil.example", False),
        ("evil.example:8080", False),
        ("192.0.2.1", False),
        ("localhost.evil.example", False),
        ("localhost:8080:1", False),
        ("user@localhost", False),
        ("", False),
        (None, False),
    ],
)
def test_a_host_that_another_site_could_have_is_refused(header: str | None, known: bool) -> None:
    assert Access("127.0.0.1", None, ["Status.example.com"]).known_host(header) is known


def test_with_a_token_any_address_is_the_servers() -> None:
    access = Access("0.0.0.0", TOKEN)

    assert access.known_host("192.0.2.1:8080")
    assert not access.known_host("evil.example")


@pytest.mark.parametrize(
    "names", ["status.example.com", ["a:80"], ["http://a"], [""], [3], 3, ["a" * 300], ["a b"]]
)
def test_names_are_host_names(names: object) -> None:
    with pytest.raises(InvalidOption, match="names must be"):
        Access("127.0.0.1", None, names)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("site", "foreign"),
    [(None, False), ("none", False), ("same-origin", False), ("cross-site", True), ("same-site", True)],
)
def test_requests_of_other_sites_are_told(site: str | None, foreign: bool) -> None:
    assert Access("127.0.0.1", None).foreign(site) is foreign


def test_the_policy_lets_nothing_in_from_elsewhere_and_no_script_in_the_page() -> None:
    policy = dict(each.strip().split(" ", 1) for each in HEADERS["Content-Security-Policy"].split(";"))

    assert policy.pop("default-src") == "'none'"
    assert policy.pop("base-uri") == policy.pop("frame-ancestors") == "'none'"
    assert set(policy.values()) == {"'self'"}
