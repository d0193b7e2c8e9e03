"""The standards' own vectors, byte for byte, that of the key directory among them, and what of a directory is refused."""

import json
from base64 import urlsafe_b64decode
from pathlib import Path

import http_sfv
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import polite
from polite.http.message_signature import signature_base, signature_fields, signature_params
from polite.origin import Target
from polite.signing.card import directory_fields, key_directory
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth
from tests.signing import vectors
from tests.signing.vectors import Vector


@pytest.mark.parametrize("vector", vectors.REQUESTS, ids=lambda vector: vector.name)
def test_a_signature_is_that_of_the_vector(vector: Vector, rfc_key: SigningKey) -> None:
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
    vector: Vector, label: str, agent: str, covered: str, rfc_key: SigningKey
) -> None:
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
def other(tmp_path: Path) -> SigningKey:
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
