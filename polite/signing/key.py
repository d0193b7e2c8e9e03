"""SigningKey: an Ed25519 key from a PEM or JWK file, which signs and is never shown."""

import binascii
import json
import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Self

from polite.errors import InvalidOption
from polite.http.message_signature import Component, signature_base, signature_fields, signature_params
from polite.log import fields, log
from polite.options import needing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Octets of a key file. One key has some hundreds.
_LONGEST_FILE = 65_536
_SEED_OCTETS = 32
_MADE_FOR_THE_OWNER, _OF_OTHERS = 0o600, 0o077
_NEEDED = "an Ed25519 private key, as PEM (PKCS #8, without a password) or as a JWK"
# RFC 9421, B.1.4, and RFC 8037, A.1: the keys of the examples, with which anyone can sign. They are not to be used in production
# (draft-ietf-webbotauth-httpsig-protocol-01, 29 October 2026, "Test and Demonstration Keys").
_KNOWN_TO_ALL = frozenset(
    {"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"}
)


class SigningKey:
    """An Ed25519 private key. It is in no `repr`, error or pickle.

    Made by `read`, `parse` or `make`.

    Example:
        key = polite.SigningKey.make("key.pem")  # once
        key = polite.SigningKey.read("key.pem")  # from then on
        signer = polite.WebBotAuth(key, "https://bot.example")

    Attributes:
        thumbprint: The JWK thumbprint of the public key (RFC 7638; RFC 8037, appendix A.3): the `keyid` of signatures.
        sign: Returns the signature of some octets: 64 octets (RFC 8032).
    """

    __slots__ = ("_x", "sign", "thumbprint")

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self.sign: Callable[[bytes], bytes] = key.sign
        self._x = _unpadded(key.public_key().public_bytes_raw())
        # RFC 7638, 3.2: the required members in lexicographic order, without white space.
        canonical = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": self._x}, separators=(",", ":"))
        self.thumbprint: str = _unpadded(sha256(canonical.encode()).digest())

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Self:
        """Read a key file: PEM (PKCS #8) or a JWK (RFC 8037).

        Raises:
            InvalidOption: The file cannot be read, or has no Ed25519 private key; or `cryptography` is not installed. The message
                has nothing of the file's content.
        """
        _require_cryptography()
        name = os.fspath(file)
        try:
            with Path(name).open("rb") as opened:
                content = opened.read(_LONGEST_FILE + 1)
                mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
        except OSError as error:
            raise InvalidOption(f"the signing key {name!r}: {error.strerror or error}") from error
        if mode & _OF_OTHERS and os.name == "posix":
            text = "the signing key %r can be read by other users (mode %04o): chmod 600 it"
            log.warning(text, name, mode, extra=fields("key_readable"))
        return cls.parse(content, name=repr(name))

    @classmethod
    def parse(cls, content: str | bytes, *, name: str = "that was given") -> Self:
        """Read the content of a key file, such as one that comes from a vault.

        Args:
            content: PEM or a JWK.
            name: What errors call it.

        Raises:
            InvalidOption: As `read`.
        """
        _require_cryptography()
        octets = content.encode("utf-8", "replace") if isinstance(content, str) else content
        if len(octets) > _LONGEST_FILE:
            raise InvalidOption(f"the signing key {name} is longer than {_LONGEST_FILE} octets")
        try:
            return cls(_from_jwk(octets) if octets.lstrip()[:1] == b"{" else _from_pem(octets))
        except _NoKey as error:
            # Without its cause: what a parser says of a key may quote it.
            raise InvalidOption(f"the signing key {name}: {error}; it must be {_NEEDED}") from None

    @classmethod
    def make(cls, file: str | os.PathLike[str]) -> Self:
        """Make a new key, and write it to a new file that only its owner can read (PEM, mode 0600).

        Raises:
            InvalidOption: The file exists, or cannot be written; or `cryptography` is not installed.
        """
        _require_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        name, key = os.fspath(file), Ed25519PrivateKey.generate()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            # Never one that exists: a key that was published is lost with its file.
            opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MADE_FOR_THE_OWNER)
            with open(opened, "wb") as new:  # noqa: PTH123 - a file descriptor
                new.write(pem)
        except FileExistsError as error:
            raise InvalidOption(
                f"the new signing key {name!r}: the file exists, and is not replaced; choose another name"
            ) from error
        except OSError as error:
            raise InvalidOption(f"the new signing key {name!r}: {error.strerror or error}") from error
        return cls(key)

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key as a JWK (RFC 8037, 2), with its thumbprint as `kid`, in the order of the drafts' examples."""
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.thumbprint, "x": self._x, "use": "sig"}

    @property
    def is_an_example(self) -> bool:
        """Whether it is a key that RFC 9421 or RFC 8037 prints: it proves nothing."""
        return self.thumbprint in _KNOWN_TO_ALL

    def __repr__(self) -> str:
        return f"<SigningKey {self.thumbprint}>"

    # It never changes. A framework may copy its settings, where a crawler puts it.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a SigningKey is not pickled: it would be written out")


class _NoKey(Exception):
    """The file has no key that can be used."""


def _from_pem(content: bytes) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"PUBLIC KEY" in content and b"PRIVATE KEY" not in content:
        raise _NoKey("it is a public key")
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise _NoKey("it is encrypted with a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _NoKey("it is no key that can be read") from None
    if not isinstance(key, Ed25519PrivateKey):
        kind = type(key).__name__.lstrip("_").removesuffix("PrivateKey")
        raise _NoKey(f"it is an {kind} key")
    return key


def _from_jwk(content: bytes) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        jwk = json.loads(content)
    except (ValueError, RecursionError):
        raise _NoKey("it is no JSON") from None
    if not isinstance(jwk, dict) or (jwk.get("kty"), jwk.get("crv")) != ("OKP", "Ed25519"):
        raise _NoKey('it is no JWK with "kty": "OKP" and "crv": "Ed25519"')
    if "d" not in jwk:
        raise _NoKey('it is a public key, without "d"')
    key = Ed25519PrivateKey.from_private_bytes(_octets(jwk["d"], "d"))
    if "x" in jwk and _octets(jwk["x"], "x") != key.public_key().public_bytes_raw():
        raise _NoKey('its "x" is not the public key of its "d"')
    return key


def _octets(value: object, name: str) -> bytes:
    """Return the 32 octets of a member (RFC 8037, 2: base64url without padding)."""
    try:
        octets = urlsafe_b64decode(value + "=" * (-len(value) % 4)) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        octets = b""
    if len(octets) != _SEED_OCTETS:
        raise _NoKey(f'its "{name}" is not {_SEED_OCTETS} octets in base64url')
    return octets


def _unpadded(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


def signed_fields(
    key: SigningKey,
    label: str,
    components: Sequence[Component],
    created: int,
    lifetime_s: int,
    tag: str,
    nonce: str | None = None,
) -> dict[str, str]:
    """Return Signature-Input and Signature, with the signature of a key (RFC 9421, 2 and 4)."""
    times: dict[str, int | str] = {"created": created, "expires": created + lifetime_s}
    once: dict[str, int | str] = {} if nonce is None else {"nonce": nonce}
    params = signature_params(components, {**times, "keyid": key.thumbprint, **once, "tag": tag})
    return signature_fields(label, params, key.sign(signature_base(components, params)))


def _require_cryptography() -> None:
    with needing("signing needs cryptography", "sign"):
        import cryptography  # noqa: F401
