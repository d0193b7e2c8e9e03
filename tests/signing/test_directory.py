"""The key directory: the draft's vector, byte for byte, and what is refused."""

from pathlib import Path

import http_sfv
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import polite
from polite.signing.card import directory_fields, key_directory
from polite.signing.key import SigningKey
from tests.signing import vectors


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


def test_a_key_of_the_standards_is_not_published(rfc_key: SigningKey, key: SigningKey) -> None:
    with pytest.raises(polite.InvalidOption, match="an example of the standards"):
        key_directory([key, rfc_key])


def test_a_directory_has_some_keys_and_each_once(key: SigningKey) -> None:
    with pytest.raises(polite.InvalidOption, match="1 to 16 keys, got 0"):
        key_directory([])
    with pytest.raises(polite.InvalidOption, match="each key once"):
        key_directory([key, key])
