"""WebBotAuth: signs requests with HTTP Message Signatures, as Web Bot Auth asks."""

import os
from base64 import b64encode
from collections.abc import Iterable
from typing import Self

from polite.errors import InvalidOption, InvalidURL, redact_url
from polite.http.message_signature import Component
from polite.options import boolean, instance, number
from polite.origin import Target
from polite.signing.key import SigningKey, signed_fields

# The label of the signature, and the key of the Signature-Agent member that it covers: the two must be equal
# (draft-ietf-webbotauth-httpsig-protocol-01, "Signature-Agent").
_LABEL = "sig"
_TAG = "web-bot-auth"
_LEAST_LIFETIME_S = 10.0
# The draft recommends no more than 24 hours.
_MOST_LIFETIME_S = 86_400.0
# RFC 9421, 2.2: what names the server, of which one is required; and what narrows the signature to a request.
_NAMES_THE_SERVER = ("@authority", "@target-uri")
_KNOWN = (*_NAMES_THE_SERVER, "@method", "@path", "@query", "@scheme")


class WebBotAuth:
    """Signs requests as Web Bot Auth asks: `open_gate(signer=WebBotAuth("key.pem", "https://bot.example"))`.

    The source is draft-ietf-webbotauth-httpsig-protocol-01 (29 October 2026), the successor of
    draft-meunier-webbotauth-httpsig-protocol, with RFC 9421 and Ed25519. Each signature names one authority, has been made when its
    request is sent, and ends `lifetime` seconds later.

    Example:
        key = polite.SigningKey.make("key.pem")  # once, and SigningKey.read from then on
        signer = polite.WebBotAuth(key, "https://bot.example/.well-known/http-message-signatures-directory")
        async with polite.open_session("ExampleBot/1.0 (+https://bot.example)", signer=signer) as session:
            ...

    Args:
        key: The name of a PEM or JWK file with an Ed25519 key, or a SigningKey.
        signature_agent: The https URL that says where servers find the public key. The newest draft wants the URL of the key
            directory itself. Servers that follow the drafts before 29 October 2026 want its origin, such as https://bot.example.
        lifetime: How long a signature is valid, 10 to 86,400 seconds. It must cover the way to the server, and the difference of
            both clocks. Until then, anyone who reads the signature can use it again.
        components: What is covered besides Signature-Agent: `@authority` or `@target-uri`, and perhaps `@method`, `@path`, `@query`
            and `@scheme`, which narrow the signature to one resource.
        nonce: Whether each signature has a random nonce, for servers that refuse a signature the second time.
        plain_http: Whether requests over http are signed too. Others on the way could read such a signature, and use it over https:
            the draft tells servers to refuse it.
        agent_as_string: Whether Signature-Agent is a string, as in draft-meunier-http-message-signatures-directory-03, and not a
            dictionary. Cloudflare's documentation of 1 July 2026 says that it verifies nothing else.

    Attributes:
        key: The key. Assign another to replace it while the gate is open.
        signature_agent: The URL, as sent.

    Raises:
        InvalidOption: The key cannot be used (as `SigningKey.read`), or an option has the wrong type or value.
    """

    def __init__(
        self,
        key: "SigningKey | str | os.PathLike[str]",
        signature_agent: str,
        *,
        lifetime: float = 300.0,
        components: Iterable[str] = ("@authority",),
        nonce: bool = False,
        plain_http: bool = False,
        agent_as_string: bool = False,
    ) -> None:
        number("WebBotAuth: lifetime", lifetime, least=_LEAST_LIFETIME_S, most=_MOST_LIFETIME_S)
        self._with_nonce = boolean("WebBotAuth: nonce", nonce)
        self._plain_http = boolean("WebBotAuth: plain_http", plain_http)
        self._agent_as_string = boolean("WebBotAuth: agent_as_string", agent_as_string)
        self._components = _checked_components(components)
        self.signature_agent: str = _checked_url(signature_agent)
        self.key: SigningKey = key if isinstance(key, SigningKey) else SigningKey.read(key)
        self._lifetime_s = int(lifetime)

    def sign(self, method: str, target: Target, now: float) -> dict[str, str]:
        """Return Signature-Agent, Signature-Input and Signature for one request; nothing for http, unless `plain_http`.

        Args:
            method: The method, as sent.
            target: The URL.
            now: Unix time.
        """
        scheme = target.origin.scheme
        if scheme != "https" and not (scheme == "http" and self._plain_http):
            return {}
        agent, values = f'"{self.signature_agent}"', _derived(method, target)
        components: list[Component] = [(f'"{name}"', values[name]) for name in self._components]
        member = "" if self._agent_as_string else f';key="{_LABEL}"'
        components.append((f'"signature-agent"{member}', agent))
        # 64 random octets in base64, as in the drafts' examples.
        nonce = b64encode(os.urandom(64)).decode() if self._with_nonce else None
        signed = signed_fields(self.key, _LABEL, components, int(now), self._lifetime_s, _TAG, nonce)
        return {"Signature-Agent": agent if self._agent_as_string else f"{_LABEL}={agent}", **signed}

    # Scrapy copies its settings, where the options of a gate are, for each crawler; a new key is for all of them.
    def __deepcopy__(self, _: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"WebBotAuth({self.key!r}, {self.signature_agent!r}, lifetime={self._lifetime_s})"


def _derived(method: str, target: Target) -> dict[str, str]:
    """Return the values of derived components (RFC 9421, 2.2)."""
    scheme, _, authority = target.origin.text.partition("://")
    path, _, query = target.path.partition("?")
    return {
        # In lower case, without the scheme's default port (2.2.3).
        "@authority": authority,
        "@target-uri": target.url,
        "@method": method,
        "@path": path,
        "@query": f"?{query}",
        "@scheme": scheme,
    }


def _checked_components(components: object) -> tuple[str, ...]:
    if isinstance(components, str) or not isinstance(components, Iterable):
        raise InvalidOption(f"WebBotAuth: components must be a sequence of names, got {components!r}")
    names = tuple(components)
    if unknown := [name for name in names if name not in _KNOWN]:
        raise InvalidOption(f"WebBotAuth: components has {unknown[0]!r}; known are {', '.join(_KNOWN)}")
    if len(set(names)) < len(names):
        raise InvalidOption(f"WebBotAuth: components names one twice: {names!r}")
    if not set(names).intersection(_NAMES_THE_SERVER):
        raise InvalidOption(
            f"WebBotAuth: components must have @authority or @target-uri, got {names!r}: the signature would be good for any server"
        )
    return names


def _checked_url(url: object) -> str:
    """Return the URL as it is sent. A bare origin has no path, not even `/` (RFC 6454, 6.2)."""
    url = instance("WebBotAuth: signature_agent", url, str, "a URL")
    try:
        target = Target.of(url)
    except InvalidURL as error:
        raise InvalidOption(f"is wrong: {error}", option="WebBotAuth: signature_agent") from error
    if target.origin.scheme != "https" or "@" in url or "#" in url:
        raise InvalidOption(
            f"must be an https URL without credentials and fragment, got {redact_url(url)!r}",
            option="WebBotAuth: signature_agent",
        )
    return target.origin.text if target.path == "/" else target.url
