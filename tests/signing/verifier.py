"""A server that verifies Web Bot Auth, from the standards and a parser of structured fields that is not ours."""

from dataclasses import dataclass

import http_sfv
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from polite.signing.key import SigningKey

AGENT = "https://bot.test/.well-known/http-message-signatures-directory"


@dataclass(frozen=True)
class Verified:
    """A signature that is valid.

    Attributes:
        covered: the covered components, as written.
        agent: the URL that Signature-Agent names.
    """

    covered: tuple[str, ...]
    agent: str
    created: int
    expires: int
    keyid: str
    tag: str
    nonce: str | None


def verified(key, headers, *, method, authority, scheme, path):
    """Verify the one signature of a request as it came (RFC 9421, 3.2). Raises if it is not valid for this server."""
    inputs, signatures = http_sfv.Dictionary(), http_sfv.Dictionary()
    inputs.parse(headers["Signature-Input"].encode())
    signatures.parse(headers["Signature"].encode())
    [label] = inputs
    components = inputs[label]
    derived = {
        "@authority": authority,
        "@method": method,
        "@path": path.partition("?")[0],
        "@query": f"?{path.partition('?')[2]}",
        "@scheme": scheme,
        "@target-uri": f"{scheme}://{authority}{path}",
    }
    lines = []
    for component in components:
        value = derived.get(component.value)
        if component.value == "signature-agent":
            agent = _agent(headers["Signature-Agent"], component.params.get("key"))
            value = str(agent)
        lines.append(f"{component}: {value}")
    lines.append(f'"@signature-params": {components}')
    public = Ed25519PublicKey.from_public_bytes(_octets(key))
    public.verify(signatures[label].value, "\n".join(lines).encode())
    params = components.params
    told = {name: params[name] for name in ("created", "expires", "keyid", "tag")}
    covered = tuple(str(component) for component in components)
    return Verified(covered, agent.value, **told, nonce=params.get("nonce"))


def _agent(field: str, key: str | None) -> http_sfv.Item:
    """Return the member of a Signature-Agent that is covered; without a key the field is one string, as in older drafts."""
    if key is None:
        item = http_sfv.Item()
        item.parse(field.encode())
        return item
    agents = http_sfv.Dictionary()
    agents.parse(field.encode())
    return agents[key]


def _octets(key: SigningKey) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(key.public_jwk["x"] + "=")
