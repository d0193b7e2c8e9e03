"""The standards' own vectors, byte for byte, that of the key directory among them, and what of a directory is refused.

SigningKey: what it reads, what it refuses, and that it shows nothing.
"""

import copy
import json
import os
import pickle
import stat
import sys
import traceback
from base64 import urlsafe_b64decode

import http_sfv
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import polite
from polite.http.message_signature import signature_base, signature_fields, signature_params
from polite.origin import Target
from polite.signing.card import directory_fields, key_directory
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth
from tests.signing import vectors


@pytest.mark.parametrize("vector", vectors.REQUESTS, ids=lambda vector: vector.name)
def test_a_signature_is_that_of_the_vector(vector, rfc_key):
    params = signature_params(vector.components, vector.parameters)
    base = signature_base(vector.components, params)
    assert base == vector.base.encode()
    assert signature_fields(vector.label, params, rfc_key.sign(base)) == {
        "Signature-Input": vector.signature_input,
        "Signature": vector.signature,
    }


def test_a_key_its_thumbprint_and_its_signature_are_those_of_rfc_8037(tmp_path) -> None:
    (tmp_path / "key.jwk").write_text(json.dumps(vectors.RFC8037_JWK))
    key = SigningKey.read(tmp_path / "key.jwk")
    assert key.thumbprint == vectors.RFC8037_THUMBPRINT
    assert key.sign(vectors.RFC8037_SIGNED) == urlsafe_b64decode(vectors.RFC8037_SIGNATURE + "==")


@pytest.mark.parametrize(
    ("vector", "label", "agent", "covered"),
    [
        # The order of section "Sending a Request"; no alg and no nonce, which are optional.
        (vectors.DRAFT_IETF_01, '"sig"', f"sig={vectors.AGENT}", '"signature-agent";key="sig"'),
        (vectors.DRAFT_LEGACY, '"sig2"', vectors.AGENT, '"signature-agent"'),
    ],
    ids=["a dictionary", "a string, as before"],
)
def test_what_is_sent_differs_from_the_vector_in_parameters_that_are_optional_only(
    vector, label, agent, covered, rfc_key
):
    signer = WebBotAuth(
        rfc_key, "https://signature-agent.test", lifetime=3600, agent_as_string=agent == vectors.AGENT
    )

    fields = signer.sign("GET", Target.of("https://example.com/path/to/resource"), 1735689600.9)

    written = (
        f'("@authority" {covered});created=1735689600;expires=1735693200'
        f';keyid="{vectors.THUMBPRINT}";tag="web-bot-auth"'
    )
    base = vector.base.replace('"sig2"', label).partition('"@signature-params": ')[0]
    signed = rfc_key.sign(f'{base}"@signature-params": {written}'.encode())
    assert fields == {"Signature-Agent": agent, **signature_fields("sig", written, signed)}


@pytest.fixture
def other(tmp_path):
    return SigningKey.make(tmp_path / "other.pem")


def test_the_directory_is_that_of_the_draft(rfc_key: SigningKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SigningKey, "is_an_example", False)
    monkeypatch.setattr("polite.signing.card._MOST_LIFETIME_S", 10**10)
    lifetime_s = vectors.DIRECTORY_EXPIRES - vectors.DIRECTORY_CREATED

    body = key_directory([rfc_key])
    fields = directory_fields(
        [rfc_key], body, vectors.DIRECTORY_AUTHORITY, vectors.DIRECTORY_CREATED, lifetime_s
    )

    assert body == vectors.DIRECTORY_BODY
    assert fields == {
        "Content-Type": "application/http-message-signatures-directory+json",
        "Cache-Control": "max-age=86400",
        "Content-Digest": vectors.DIRECTORY_DIGEST,
        "Signature-Input": vectors.DIRECTORY_INPUT,
        "Signature": vectors.DIRECTORY_SIGNATURE,
    }


def test_each_key_signs_while_keys_change(key: SigningKey, other: SigningKey) -> None:
    body = key_directory([key, other])
    fields = directory_fields([key, other], body, "bot.test", 1_750_000_000.5, 3_600)

    inputs, signatures = http_sfv.Dictionary(), http_sfv.Dictionary()
    inputs.parse(fields["Signature-Input"].encode())
    signatures.parse(fields["Signature"].encode())
    assert list(inputs) == list(signatures) == ["binding", "binding1"]
    for label, each in zip(inputs, (key, other), strict=True):
        signed = (
            f'"@authority";req: bot.test\n"content-digest": {fields["Content-Digest"]}\n'
            f'"@signature-params": {inputs[label]}'
        )
        assert inputs[label].params["keyid"] == each.thumbprint
        public = http_sfv.Item()
        public.parse(f":{each.public_jwk['x'].replace('-', '+').replace('_', '/')}=:".encode())
        Ed25519PublicKey.from_public_bytes(public.value).verify(signatures[label].value, signed.encode())


def test_a_directory_has_some_keys_each_once_and_none_of_the_standards(rfc_key: SigningKey, key: SigningKey):
    for keys, why in (
        ([key, rfc_key], "an example of the standards"),
        ([], "1 to 16 keys, got 0"),
        ([key, key], "each key once"),
    ):
        with pytest.raises(polite.InvalidOption, match=why):
            key_directory(keys)


NO_PASSWORD = serialization.NoEncryption()
ENCRYPTED = serialization.BestAvailableEncryption(b"secret")


def pem(key, encryption=NO_PASSWORD):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def read(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    return SigningKey.read(tmp_path / "key")


def jwk(**members):
    return json.dumps({**vectors.JWK, **members}).encode()


@pytest.mark.parametrize(
    "content",
    [vectors.PEM, jwk(), b"\n  " + jwk(), jwk(d=vectors.SEED + "=")],
    ids=["pem", "jwk", "space", "padding"],
)
def test_a_key_is_read_from_pem_or_jwk(tmp_path, content):
    key = read(tmp_path, content)
    assert key.thumbprint == vectors.THUMBPRINT
    assert key.is_an_example


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff" * 50, "no key that can be read"),
        (vectors.PEM.replace(b"MC4C", b"MC4D"), "no key that can be read"),
        (vectors.PUBLIC_PEM, "it is a public key"),
        (pem(ed25519.Ed25519PrivateKey.generate(), ENCRYPTED), "encrypted with a password"),
        (pem(rsa.generate_private_key(65537, 2048)), "it is an RSA key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "it is an"),
        (b"{", "it is no JSON"),
        (b"{" * 50_000, "it is no JSON"),
        (b'{"keys": []}', 'no JWK with "kty": "OKP"'),
        (jwk(crv="X25519"), 'no JWK with "kty": "OKP" and "crv": "Ed25519"'),
        (json.dumps({n: v for n, v in vectors.JWK.items() if n != "d"}).encode(), "it is a public key"),
        *((jwk(d=text), 'its "d" is not 32 octets') for text in ("!!", "ä" * 43, vectors.SEED[:-2])),
        (jwk(x=vectors.RFC8037_JWK["x"]), 'its "x" is not the public key'),
        (b"x" * 70_000, "longer than 65536 octets"),
    ],
)
def test_what_is_no_such_key_is_refused_by_name(tmp_path, content, why):
    with pytest.raises(polite.InvalidOption) as caught:
        read(tmp_path, content)
    assert why in str(caught.value)
    assert str(tmp_path / "key") in str(caught.value)


@pytest.mark.parametrize("content", [jwk(d=vectors.SEED[:-3]), vectors.PEM.replace(b"DFtM", b"D")])
def test_no_error_shows_a_part_of_the_key(tmp_path, content):
    with pytest.raises(polite.InvalidOption) as caught:
        read(tmp_path, content)
    shown = "".join(traceback.format_exception(caught.value))
    assert vectors.SEED[:8] not in shown
    assert "MC4CAQ" not in shown


def test_a_key_shows_its_thumbprint_only(key, key_file):
    secret = key_file.read_text().splitlines()[1]
    signer = polite.WebBotAuth(key, "https://bot.test")
    for shown in (repr(key), str(key), repr(signer), f"{vars(signer)}"):
        assert key.thumbprint in shown
        assert secret[22:] not in shown
    assert key.public_jwk.keys() == {"kty", "crv", "kid", "x", "use"}


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_key_that_others_can_read_is_warned_of(mode: int, warned: bool, key_file, caplog):
    key_file.chmod(mode)
    SigningKey.read(key_file)
    assert ("key.pem' can be read by other users" in caplog.text) is warned
    assert (f"(mode {mode:04o}): chmod 600 it" in caplog.text) is warned


def test_a_new_key_is_for_its_owner_only_and_replaces_none(tmp_path):
    before = os.umask(0)
    try:
        made = SigningKey.make(tmp_path / "new.pem")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "new.pem").stat().st_mode) == 0o600
    assert SigningKey.read(tmp_path / "new.pem").thumbprint == made.thumbprint
    assert not made.is_an_example
    with pytest.raises(polite.InvalidOption, match="no.pem.*No such file"):
        SigningKey.read(tmp_path / "no.pem")
    with pytest.raises(polite.InvalidOption, match="new.pem.*the file exists"):
        SigningKey.make(tmp_path / "new.pem")
    assert SigningKey.read(tmp_path / "new.pem").thumbprint == made.thumbprint


def test_without_cryptography_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for use in (SigningKey.read, SigningKey.make):
        with pytest.raises(polite.InvalidOption, match=r"pip install 'polite-crawl\[sign\]'"):
            use(tmp_path / "key.pem")


def test_copies_of_settings_have_the_same_key_and_signer_and_no_key_is_pickled(key: SigningKey) -> None:
    signer = polite.WebBotAuth(key, "https://bot.test")
    assert copy.copy(key) is copy.deepcopy(key) is key
    assert copy.deepcopy({"signer": signer})["signer"] is signer
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)
