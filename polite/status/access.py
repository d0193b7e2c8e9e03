"""Access to the status page: this machine needs nothing, others need a token. Pure; no request, no event loop.

A page in a browser on this machine can send requests to loopback, and DNS rebinding gives such a page the origin of this server.
So the Host header must be a name that no other site can have: an address, `localhost`, or one that the user named. Requests that
a page of another site sent are refused by Sec-Fetch-Site (W3C Fetch Metadata Request Headers), which all current browsers send.
"""

import hmac
import re
import secrets
from collections.abc import Collection
from hashlib import sha256
from ipaddress import ip_address

from polite.errors import InvalidOption

_LEAST_TOKEN, _MOST_TOKEN = 16, 1_024
_TOKEN = re.compile(r"[!-~]+")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")

# What is said of each response. Nothing comes from another host, and nothing in the page is a script or a style but its two files.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens at this address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """Decides about requests by their headers.

    Args:
        host: The address that the server listens at.
        token: What others than this machine must know; None for none.
        names: Names of this server that a Host header may have, besides addresses and `localhost`.

    Raises:
        InvalidOption: The address is not loopback and there is no token, the token is short, or a name is none.
    """

    def __init__(self, host: str, token: str | None, names: Collection[str] = ()) -> None:
        if token is None and not is_loopback(host):
            raise InvalidOption(
                f"status: host={host!r} can be reached from other machines, and the page shows URLs: give a token of at least "
                f"{_LEAST_TOKEN} characters, or listen at 127.0.0.1"
            )
        self._token = None if token is None else _digest(_checked(token))
        self._names = frozenset({"localhost", *_checked_names(names)})
        # A browser that has shown the token gets this instead, so that the token is in no file of it.
        self._pass = secrets.token_urlsafe(32)

    @property
    def needs_token(self) -> bool:
        """Whether a token is needed."""
        return self._token is not None

    def known_host(self, header: str | None) -> bool:
        """Whether the Host header names this server by an address or a name that is its own."""
        found = _HOST.fullmatch(header or "")
        if found is None:
            return False
        name = found[1].lower()
        if name in self._names:
            return True
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return False
        return self.needs_token or address.is_loopback

    def foreign(self, sec_fetch_site: str | None) -> bool:
        """Whether a page of another site sent the request."""
        return sec_fetch_site not in (None, "same-origin", "none")

    def allows(self, authorization: str | None, cookie: str | None) -> bool:
        """Whether a request may be answered: it has the token, or what a browser got for it."""
        if self._token is None:
            return True
        kind, _, token = (authorization or "").partition(" ")
        by_token = kind.lower() == "bearer" and self.is_token(token.strip())
        return by_token or hmac.compare_digest(_digest(cookie or ""), _digest(self._pass))

    def is_token(self, token: str) -> bool:
        """Compare in a time that tells nothing of the token."""
        return self._token is not None and hmac.compare_digest(_digest(token), self._token)

    @property
    def granted(self) -> str:
        """The value of the cookie that stands for the token while this server runs."""
        return self._pass


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def _checked(token: object) -> str:
    # Never its value: messages are logged.
    if (
        not isinstance(token, str)
        or not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN
        or not _TOKEN.fullmatch(token)
    ):
        raise InvalidOption(
            f"status: token must have {_LEAST_TOKEN} to {_MOST_TOKEN} visible ASCII characters; it is not shown here"
        )
    return token


def _checked_names(names: object) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InvalidOption(f"status: names must be a list of host names, got {names!r}")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", name):
            raise InvalidOption(f"status: names must be host names without a port, got {name!r}")
    return [name.lower() for name in names]
