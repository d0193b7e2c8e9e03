"""The key directory: the public keys of a crawler as a JWK Set, and the header fields that prove who serves it."""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from polite.errors import InvalidOption
from polite.http.message_signature import Component, signature_base, signature_fields, signature_params
from polite.options import integer
from polite.signing.key import SigningKey

WELL_KNOWN = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
_TAG = "http-message-signatures-directory"
_MOST_KEYS = 16
_MOST_LIFETIME_S = 366 * 86_400
# A key that is removed works for as long as caches keep the directory, so not for long.
_MAX_AGE_S = 86_400


def key_directory(keys: Sequence[SigningKey]) -> bytes:
    """Return the body of the key directory (draft-ietf-webbotauth-httpsig-protocol-01, 29 October 2026, "Directory Format").

    Args:
        keys: The key that signs, and perhaps one that is to replace it, or that it replaced: 1 to 16.

    Raises:
        InvalidOption: There are none or too many, one twice, or one that the standards print.
    """
    if not 1 <= len(keys) <= _MOST_KEYS:
        raise InvalidOption(f"a key directory has 1 to {_MOST_KEYS} keys, got {len(keys)}")
    if len({key.thumbprint for key in keys}) < len(keys):
        raise InvalidOption("a key directory has each key once: two of these are the same")
    if any(key.is_an_example for key in keys):
        raise InvalidOption(
            "the key is an example of the standards, with which anyone can sign: make a new one"
        )
    return json.dumps({"keys": [key.public_jwk for key in keys]}, separators=(",", ":")).encode()


def directory_fields(
    keys: Sequence[SigningKey], body: bytes, authority: str, now: float, lifetime_s: int
) -> dict[str, str]:
    """Return the header fields of the response with a key directory (the same draft, "Possession Proof on the Directory Response").

    Each key signs for the authority, so another site cannot serve the keys as its own.

    Args:
        keys: Those of the directory.
        body: The response's body, octet for octet.
        authority: The host of the directory, with its port unless that is 443.
        now: Unix time.
        lifetime_s: Seconds until the signatures expire, 60 to 31,622,400.

    Raises:
        InvalidOption: The lifetime is out of its limits.
    """
    integer("directory_fields: lifetime_s", lifetime_s, least=60, most=_MOST_LIFETIME_S)
    digest = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
    components: list[Component] = [('"@authority";req', authority), ('"content-digest"', digest)]
    signed = [
        _binding("binding" if number == 0 else f"binding{number}", key, components, int(now), lifetime_s)
        for number, key in enumerate(keys)
    ]
    return {
        "Content-Type": MEDIA_TYPE,
        "Cache-Control": f"max-age={_MAX_AGE_S}",
        "Content-Digest": digest,
        **{name: ", ".join(fields[name] for fields in signed) for name in signed[0]},
    }


def _binding(
    label: str, key: SigningKey, components: Sequence[Component], created: int, lifetime_s: int
) -> dict[str, str]:
    parameters: dict[str, int | str] = {
        "created": created,
        "expires": created + lifetime_s,
        "keyid": key.thumbprint,
        "tag": _TAG,
    }
    params = signature_params(components, parameters)
    return signature_fields(label, params, key.sign(signature_base(components, params)))
