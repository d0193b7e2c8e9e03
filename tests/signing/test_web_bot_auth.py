"""WebBotAuth: what it signs, for whom, and for how long."""

import pytest
from cryptography.exceptions import InvalidSignature

import polite
from polite.signing.web_bot_auth import WebBotAuth
from tests.signing.verifier import AGENT, Verified, verified

NOW = 1_750_000_000.7


def signed(signer: WebBotAuth, url: str, **seen: str) -> Verified:
    target = polite.Target.of(url)
    scheme, _, authority = target.origin.text.partition("://")
    server = {"method": "GET", "authority": authority, "scheme": scheme, "path": target.path, **seen}
    return verified(signer.key, signer.sign("GET", target, NOW), **server)


def test_a_server_can_verify_what_it_gets(key):
    given = {"agent": AGENT, "keyid": key.thumbprint, "tag": "web-bot-auth", "nonce": None}
    given |= {"created": 1_750_000_000, "expires": 1_750_000_300}
    expected = Verified(covered=('"@authority"', '"signature-agent";key="sig"'), **given)
    assert signed(WebBotAuth(key, AGENT), "https://example.com/a?b=c") == expected


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://Example.COM/", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://[2001:DB8::1]/", "[2001:db8::1]"),
    ],
)
def test_the_authority_is_as_the_standard_normalizes_it(key, url, authority):
    signed(WebBotAuth(key, AGENT), url, authority=authority)


@pytest.mark.parametrize(
    ("component", "other"),
    [
        ("@method", {"method": "HEAD"}),
        ("@path", {"path": "/b?c"}),
        ("@query", {"path": "/a?d"}),
        ("@target-uri", {"path": "/a?d"}),
        ("@scheme", {"scheme": "http"}),
    ],
)
def test_more_components_narrow_it(key, component, other):
    wide = WebBotAuth(key, AGENT)
    narrow = WebBotAuth(key, AGENT, components=["@authority", component])
    assert signed(narrow, "https://example.com/a?c").covered[1] == f'"{component}"'
    assert signed(wide, "https://example.com/a?c", **other)
    with pytest.raises(InvalidSignature):
        signed(narrow, "https://example.com/a?c", **other)


def test_a_nonce_is_new_each_time(key):
    signer = WebBotAuth(key, AGENT, nonce=True)
    nonces = {signed(signer, "https://example.com/").nonce for _ in range(3)}
    assert len(nonces) == 3
    assert all(nonce is not None and len(nonce) == 88 for nonce in nonces)


def test_only_https_is_signed_by_default(key):
    plain = polite.Target.of("http://example.com/")
    assert WebBotAuth(key, AGENT).sign("GET", plain, NOW) == {}
    assert WebBotAuth(key, AGENT, plain_http=True).sign("GET", plain, NOW)
    for signer in (WebBotAuth(key, AGENT), WebBotAuth(key, AGENT, plain_http=True)):
        assert signer.sign("GET", polite.Target.of("ftp://example.com/"), NOW) == {}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://bot.test", "https://bot.test"),
        ("https://Bot.test/", "https://bot.test"),
        (AGENT, AGENT),
        ('https://bot.test/a"b', "https://bot.test/a%22b"),
    ],
)
def test_the_url_of_the_keys_is_sent_as_the_drafts_want_it(key, given, sent):
    signer = WebBotAuth(key, given)
    assert signer.signature_agent == sent
    assert signed(signer, "https://example.com/").agent == sent


@pytest.mark.parametrize(
    "options",
    [
        {"signature_agent": "http://bot.test"},
        {"signature_agent": "https://user:secret@bot.test"},
        {"signature_agent": "https://bot.test/#keys"},
        {"signature_agent": "bot.test"},
        {"lifetime": 9.9},
        {"lifetime": float("nan")},
        {"components": "@authority"},
        {"components": ["@method"]},
        {"components": ["@authority", "@authority"]},
        {"components": ["@authority", "cookie"]},
        {"nonce": 1},
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(key, options):
    [option] = options
    with pytest.raises(polite.InvalidOption, match=rf"^WebBotAuth: {option}\b") as caught:
        WebBotAuth(**{"key": key, "signature_agent": AGENT, **options})
    assert "secret" not in str(caught.value)
