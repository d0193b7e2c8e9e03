"""The standards' own vectors, byte for byte."""

import json
from base64 import urlsafe_b64decode

import pytest

from polite.http.message_signature import signature_base, signature_fields, signature_params
from polite.origin import Target
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


def test_the_thumbprint_is_that_of_the_drafts(rfc_key: SigningKey) -> None:
    assert rfc_key.thumbprint == vectors.THUMBPRINT


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
