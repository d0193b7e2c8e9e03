"""Licences of pages: RSL 1.0 (rslstandard.org/rsl, recommended November 2025). polite fetches and buys none."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from polite.errors import InvalidOption
from polite.http.challenge import challenges
from polite.http.header_fields import links

_TYPE = "application/rsl+xml"
# RFC 9110, 11.2: what credentials of one token may be made of.
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]{1,8192}={0,10}")


class License(NamedTuple):
    """One reference to a licence. Its terms decide about each use that nothing else decides about.

        >>> from polite import parse, usage
        >>> robots = parse("License: https://example.com/license.xml")
        >>> usage((), robots, "ExampleBot", "/a").licenses
        (License(url='https://example.com/license.xml', line=1),)

    Attributes:
        url: where it is: absolute, or as written if it cannot be resolved.
        line: the line of robots.txt, 1-based, or None for a Link header.
    """

    url: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class LicenseChallenge:
    """A `WWW-Authenticate: License` of a response (RSL 1.0, Crawler Authorization Protocol): no page without a licence.

    Whether to get a token is the crawler's decision: polite sends and buys none.

        >>> from polite import usage
        >>> headers = {"WWW-Authenticate": 'License error="invalid_request", authorization_uri="https://example.com/token"'}
        >>> challenge = usage(headers, None, "ExampleBot", "https://example.com/").challenge
        >>> challenge.error, challenge.authorization_uri
        ('invalid_request', 'https://example.com/token')
        >>> challenge.authorization("abc")
        {'Authorization': 'License abc'}

    Attributes:
        error: why the request was refused, such as "invalid_token", or None.
        description: the same for people, or None.
        authorization_uri: where a token may be had, as written, or None.
    """

    error: str | None = None
    description: str | None = None
    authorization_uri: str | None = None

    def authorization(self, token: str) -> dict[str, str]:
        """Return the header that sends a token that the crawler has.

        Raises:
            InvalidOption: if it is no token68 (RFC 9110, 11.2), such as one with a line end.
        """
        if not _TOKEN68.fullmatch(token):
            # The value may be a secret.
            raise InvalidOption("the licence token must be letters, digits and -._~+/ with = at the end only")
        return {"Authorization": f"License {token}"}


def linked(values: Iterable[str]) -> Iterator[str]:
    """Iterate over the URLs, as written, of RSL licences in Link headers (RSL 1.0, 4.3)."""
    for value in values:
        for link in links(value):
            kind = link.parameters.get("type", "").partition(";")[0].strip().lower()
            if link.has_relation("license") and kind == _TYPE:
                yield link.target


def challenge_in(values: Iterable[str]) -> LicenseChallenge | None:
    """Return the first License challenge of WWW-Authenticate headers."""
    for value in values:
        for challenge in challenges(value):
            if challenge.scheme == "license":
                get = challenge.parameters.get
                return LicenseChallenge(get("error"), get("error_description"), get("authorization_uri"))
    return None
