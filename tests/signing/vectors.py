"""Test vectors, byte for byte: of RFC 9421, of RFC 8037, and of the drafts of Web Bot Auth.

The vectors of draft-ietf-webbotauth-httpsig-protocol-01 (29 October 2026) and of draft-meunier-webbotauth-httpsig-protocol-02 are
in their appendix "Test Vectors", those of the latter in the drafts' JSON file too (web_bot_auth_architecture_v2.json).
"""

from dataclasses import dataclass

# RFC 9421, B.1.4, and the same key in the drafts' JSON file.
PEM = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
PUBLIC_PEM = b"""-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=
-----END PUBLIC KEY-----
"""
SEED = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"
X = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
JWK = {"kty": "OKP", "crv": "Ed25519", "kid": "test-key-ed25519", "d": SEED, "x": X}
THUMBPRINT = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

# RFC 8037, appendix A.1 to A.4: a key, its thumbprint, and a signature (in base64url).
RFC8037_JWK = {
    "kty": "OKP",
    "crv": "Ed25519",
    "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}
RFC8037_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
RFC8037_SIGNED = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
RFC8037_SIGNATURE = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"


@dataclass(frozen=True)
class Vector:
    """One signature.

    Attributes:
        components: what is covered, with its values.
        parameters: those of the signature, in the vector's order.
        base: what is signed.
    """

    name: str
    label: str
    components: tuple[tuple[str, str], ...]
    parameters: dict[str, int | str]
    base: str
    signature_input: str
    signature: str


AGENT = '"https://signature-agent.test"'

RFC9421_B26 = Vector(
    name="RFC 9421, B.2.6",
    label="sig-b26",
    components=(
        ('"date"', "Tue, 20 Apr 2021 02:07:55 GMT"),
        ('"@method"', "POST"),
        ('"@path"', "/foo"),
        ('"@authority"', "example.com"),
        ('"content-type"', "application/json"),
        ('"content-length"', "18"),
    ),
    parameters={"created": 1618884473, "keyid": "test-key-ed25519"},
    base='"date": Tue, 20 Apr 2021 02:07:55 GMT\n'
    '"@method": POST\n'
    '"@path": /foo\n'
    '"@authority": example.com\n'
    '"content-type": application/json\n'
    '"content-length": 18\n'
    '"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length")'
    ';created=1618884473;keyid="test-key-ed25519"',
    signature_input='sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
    ';created=1618884473;keyid="test-key-ed25519"',
    signature="sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
)

_NONCE = "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA=="
_PARAMETERS: dict[str, int | str] = {
    "created": 1735689600,
    "keyid": THUMBPRINT,
    "alg": "ed25519",
    "expires": 4889289600,
    "nonce": _NONCE,
    "tag": "web-bot-auth",
}
_WRITTEN = f';created=1735689600;keyid="{THUMBPRINT}";alg="ed25519";expires=4889289600;nonce="{_NONCE}";tag="web-bot-auth"'

DRAFT_IETF_01 = Vector(
    name="draft-ietf-webbotauth-httpsig-protocol-01",
    label="sig2",
    components=(('"@authority"', "example.com"), ('"signature-agent";key="sig2"', AGENT)),
    parameters=_PARAMETERS,
    base='"@authority": example.com\n'
    '"signature-agent";key="sig2": "https://signature-agent.test"\n'
    f'"@signature-params": ("@authority" "signature-agent";key="sig2"){_WRITTEN}',
    signature_input=f'sig2=("@authority" "signature-agent";key="sig2"){_WRITTEN}',
    signature="sig2=:CGokAoY/FrPpyuzTe1Fb2kLTAH9Idw6qSFd1+D77r1firsMRCxeuLu5e6O+ek3zQgDMAzjiXtLVfqE00xnABCQ==:",
)

_LEGACY_NONCE = "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg=="
_LEGACY_WRITTEN = (
    f';created=1735689600;keyid="{THUMBPRINT}";alg="ed25519";expires=1735693200'
    f';nonce="{_LEGACY_NONCE}";tag="web-bot-auth"'
)
DRAFT_LEGACY = Vector(
    name="the same drafts, Signature-Agent as a string",
    label="sig2",
    components=(('"@authority"', "example.com"), ('"signature-agent"', AGENT)),
    parameters={**_PARAMETERS, "expires": 1735693200, "nonce": _LEGACY_NONCE},
    base='"@authority": example.com\n'
    '"signature-agent": "https://signature-agent.test"\n'
    f'"@signature-params": ("@authority" "signature-agent"){_LEGACY_WRITTEN}',
    signature_input=f'sig2=("@authority" "signature-agent"){_LEGACY_WRITTEN}',
    signature="sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
)

REQUESTS = [RFC9421_B26, DRAFT_IETF_01, DRAFT_LEGACY]

# draft-ietf-webbotauth-httpsig-protocol-01, "Signed Directory Response".
DIRECTORY_AUTHORITY = "signature-agent.test"
DIRECTORY_BODY = (
    f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{THUMBPRINT}","x":"{X}","use":"sig"}}]}}'.encode()
)
DIRECTORY_CREATED, DIRECTORY_EXPIRES = 1735689600, 4889289600
DIRECTORY_DIGEST = "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
DIRECTORY_INPUT = (
    'binding=("@authority";req "content-digest");created=1735689600;expires=4889289600'
    f';keyid="{THUMBPRINT}";tag="http-message-signatures-directory"'
)
DIRECTORY_SIGNATURE = (
    "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
)
