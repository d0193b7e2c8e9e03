"""An address is read from a URL, and nothing that may be a password is ever shown."""

import pickle

import pytest

from polite.errors import InvalidOption
from polite.stores.redis.address import Address, Kind, has_scheme, is_address


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://example.com", "redis://example.com:6379/0"),
        ("REDIS://example.com:7000/3", "redis://example.com:7000/3"),
        ("valkey://user:pw@[::1]:7000", "valkey://[::1]:7000/0"),
        ("valkeys://example.com?ssl_ca_certs=/etc/ca.pem", "valkeys://example.com:6379/0"),
        ("unix:///run/valkey.sock?db=2", "unix:///run/valkey.sock?db=2"),
        ("redis+cluster://a:1,b:2,c", "redis+cluster://a:1,b:2,c:6379"),
        ("redis+sentinel://a,b:26380/news/4", "redis+sentinel://a:26379,b:26380/news/4"),
        ("valkeys+sentinel://:pw@a/news?sentinel_password=pw", "valkeys+sentinel://a:26379/news/0"),
    ],
)
def test_an_address_is_shown_without_credentials_and_parameters(url: str, name: str) -> None:
    address = Address.of(url)
    assert is_address(url)
    assert (address.name, repr(address)) == (name, f"Address(name={name!r})")


def test_credentials_are_unescaped() -> None:
    address = Address.of("redis+sentinel://us%40er:p%2Fw%3A@a/new?sentinel_username=s&sentinel_password=t%26")
    assert address.kind is Kind.SENTINEL
    assert (address.login, address.sentinel_login) == (("us@er", "p/w:"), ("s", "t&"))


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("http://example.com", "its URL must begin with one of redis://, redis+cluster://"),
        ("redis://", "redis://... has no valid host"),
        ("redis://exa mple", "spaces"),
        ("redis://[::1", "no valid host"),
        ("redis://a,b", "several hosts"),
        ("redis://a:0", "a port from 1 to 65535, got '0'"),
        ("redis://a/x", "a number as its database, got 'x'"),
        ("redis://a/0/1", "one database, got '/0/1'"),
        ("redis://u:12/34@a:1", "in a password, write @ / ? # : as %40 %2F %3F %23 %3A"),
        ("redis://a#0", "a part that no address has"),
        ("redis://a?db=1", "unknown parameter, got 'db'; here there are: none"),
        ("rediss://a?ssl_cert_reqs=none", "here there are: ssl_ca_certs, ssl_certfile, ssl_keyfile"),
        ("redis+cluster://a/1", "only 0"),
        ("redis+sentinel://a", "must name the service"),
        ("unix://run/x", "the path of a socket"),
    ],
)
def test_a_wrong_url_is_refused_with_an_example(url: str, wrong: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Address.of(url)
    assert wrong in str(caught.value)
    assert "; an example is " in str(caught.value)


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{SECRET}@a",
        f"redis://u:{SECRET}@",
        f"redis://u:{SECRET}@a:x",
        f"redis://u:{SECRET}@a/0?x={SECRET}",
        f"redis://u:{SECRET}@exa mple",
        # Passwords that were not escaped.
        f"redis://u:12/{SECRET}@a:1/0",
        f"redis://u:{SECRET}/x@a:1/0",
        f"redis://u:12?{SECRET}@a:1/0",
        f"redis://u:12#{SECRET}@a:1/0",
        f"redis://u:[{SECRET}@a:1/0",
        f"redis+sentinel://a,b/!?sentinel_password=x@{SECRET}",
        f"redis+sentinel://a:x/news?sentinel_password={SECRET}",
        f"redis+sentinel://a/news?sentinel_passwort={SECRET}",
        f"redis+sentinel://a/news?{SECRET}@b&sentinel_password=1",
        f"unix://u:{SECRET}@/run/x?db=x",
    ],
)
def test_no_message_about_a_wrong_url_holds_a_part_of_a_password(url: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Address.of(url)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert SECRET not in repr(pickle.dumps(caught.value))


def test_the_environment_gives_credentials_that_the_url_lacks() -> None:
    environment = {"POLITE_STORE_USER": "u", "POLITE_STORE_PASSWORD": SECRET}
    assert Address.of("redis://a").with_login_of(environment).login == ("u", SECRET)
    assert Address.of("redis://:own@a").with_login_of(environment).login == (None, "own")
    assert Address.of("redis://a").with_login_of({}).login == (None, None)


@pytest.mark.parametrize(
    "store", ["crawl.sqlite", "redis.sqlite", "http://a", None, 1, b"redis://a", "://", "a b://c"]
)
def test_other_stores_are_no_addresses(store: object) -> None:
    assert not is_address(store)


def test_a_url_with_a_slip_still_has_its_scheme() -> None:
    assert all(map(has_scheme, ["redis:/:pw@a/0", "REDISS:a", "unix:/run/x.sock", "redis+cluster://a"]))
    assert not any(map(has_scheme, ["redis", "redis.sqlite", "c:/crawl.sqlite", ":", ""]))
