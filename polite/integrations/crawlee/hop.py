"""One request of a chain of redirects, and the next one that its response asks for."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from crawlee import HttpHeaders
from crawlee.http_clients import HttpResponse

from polite.errors import InvalidURL
from polite.integrations.entering import SIGNATURE_FIELDS
from polite.origin import Target

_SIGNATURE = frozenset(name.lower() for name in SIGNATURE_FIELDS)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# RFC 9110, 15.4: what belongs to one origin, and what belongs to a body that is not sent again.
_OF_THE_ORIGIN = frozenset({"authorization", "cookie", "proxy-authorization"})
_OF_THE_BODY = frozenset(
    {"content-encoding", "content-language", "content-location", "content-type", "content-length"}
)


@dataclass(frozen=True, slots=True)
class Hop:
    """A request: its URL, method, header fields and payload."""

    url: str
    method: Any
    headers: HttpHeaders
    payload: Any

    def sent_as(self, url: str, agent: HttpHeaders | None) -> "Hop":
        """Return the hop with the URL that was decided about, and with the User-Agent, if one is given."""
        headers = self.headers
        if agent is not None:
            headers = headers | agent if headers else agent
        return Hop(_with_login(url, self.url), self.method, headers, self.payload)

    def signed(self, fields: dict[str, str]) -> "Hop":
        """Return the hop with this signature, in place of the one that it may have."""
        kept = {name: value for name, value in self.headers.items() if name not in _SIGNATURE}
        return replace(self, headers=HttpHeaders({**kept, **fields}))

    def redirected(self, target: Target, response: HttpResponse) -> "Hop | None":
        """Return the hop that the response redirects to. None: it is no redirect, or to something that is no web page."""
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or not location:
            return None
        try:
            following = target.join(location)
        except InvalidURL:
            return None
        if following.origin.scheme not in ("http", "https"):
            return None
        left = frozenset() if following.origin == target.origin else _OF_THE_ORIGIN
        method, payload = _redirected_method(response.status_code, self.method), self.payload
        if method != self.method:
            left, payload = left | _OF_THE_BODY, None
        headers = HttpHeaders({name: value for name, value in self.headers.items() if name not in left})
        return Hop(following.url, method, headers, payload)


def _redirected_method(status: int, method: str) -> str:
    """RFC 9110, 15.4.2 to 15.4.4: user agents turn a POST into a GET after 301 and 302, and all but HEAD after 303."""
    if status in (301, 302) and method == "POST":
        return "GET"
    return "GET" if status == 303 and method != "HEAD" else method


def _with_login(url: str, asked: str) -> str:
    """Return the URL with the user name and password of the one that the crawler asked for."""
    if "@" not in asked:
        return url
    login, at, _ = urlsplit(asked).netloc.rpartition("@")
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{login}{at}{rest}"
