"""RobotsPolicy and FetchPolicy: how robots.txt is fetched, and what applies meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network

from polite.errors import InvalidOption, InvalidURL, redact_url
from polite.options import boolean, instance, integer, number, statuses
from polite.origin import Origin
from polite.robots.dialect import RFC9309, Dialect

Network = IPv4Network | IPv6Network
"""A network of IP addresses."""

# RFC 9309, 2.5: at least 500 KiB must be parsed. Other documents say exactly 500 KiB (H9).
BODY_LIMIT = 512_000
# Upper bounds of the options.
MOST_BYTES = 64 * 1024 * 1024
MOST_REDIRECTS = 20
# A response is kept for at least a tenth of its lifetime. Otherwise an origin would be fetched all the time.
_MOST_AHEAD = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsPolicy:
    """What a robots.txt means, and for how long. Durations are seconds of the wall clock.

    A running back-off is never forgotten, whatever the limits.

        >>> RobotsPolicy(default_ttl=3_600.0).default_ttl
        3600.0

    Attributes:
        dialect: how the file is read.
        denied_statuses: 4xx responses that count as a server error instead of "no restriction" (H4), beyond those of the dialect.
        allowed_statuses: statuses without a meaning for robots.txt that count as "no restriction" (206, 304, 407, 600, FTP's 530;
            not 5xx of HTTP).
        retry_once_statuses: statuses that are requested once more, since they concern the request and not the file.
        deny_bad_redirects: whether a redirect without a valid target is unreachable. If false, it counts as a 404.
        infer_missing: whether to probe a site that responds 5xx for robots.txt: request a page that cannot exist, and the front
            page. If the first is 5xx and the second 2xx, the site has no robots.txt (H7).
        default_ttl: how long a response is fresh (K1).
        min_ttl: the lower bound of a max-age (K2). A response always lasts until its origin's next turn, and one delay longer.
        max_ttl: the upper bound of a max-age (K2).
        refresh_ahead: the last share of the lifetime in which a request triggers a refresh in the background; 0 for none.
        keep_stale: whether the last good copy decides while a refresh fails (K3). If false, everything is disallowed meanwhile.
        unreachable_limit: after this long without a response the last copy decides, or all is allowed if there is none (H6).
        retry_min: the delay after the first failed fetch; it doubles with each failure (H5).
        retry_max: the upper bound of this delay.
        busy_retry_max: its upper bound after a 503.
        nxdomain_retry: its lower bound if the name does not exist.
        max_retry_after: the upper bound of a Retry-After.
        max_origins: the limit of origins in memory. The least recently used rules are dropped first, and are loaded from the store
            or fetched again when needed.
        max_memory: the limit of octets in memory, approximately: 2.2 kB per origin, 140 octets per rule, 1.6 kB for each of the
            first 1,000 rules with a wildcard. At least half of it is for rules: back-offs, about 1.7 kB each, may exceed it.

    Raises:
        InvalidOption: if a value is outside of its limits.
    """

    dialect: Dialect = RFC9309
    denied_statuses: frozenset[int] = frozenset()
    allowed_statuses: frozenset[int] = frozenset()
    retry_once_statuses: frozenset[int] = frozenset({408, 421, 425})
    deny_bad_redirects: bool = True
    infer_missing: bool = False
    default_ttl: float = 86_400.0
    min_ttl: float = 300.0
    max_ttl: float = 7 * 86_400.0
    refresh_ahead: float = 0.1
    keep_stale: bool = True
    unreachable_limit: float = 30 * 86_400.0
    retry_min: float = 5.0
    retry_max: float = 3_600.0
    busy_retry_max: float = 300.0
    nxdomain_retry: float = 600.0
    max_retry_after: float = 86_400.0
    max_origins: int = 100_000
    max_memory: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        for option in ("deny_bad_redirects", "infer_missing", "keep_stale"):
            boolean(f"RobotsPolicy: {option}", getattr(self, option))
        for option in ("min_ttl", "unreachable_limit", "nxdomain_retry", "max_retry_after"):
            number(f"RobotsPolicy: {option}", getattr(self, option), most=math.inf)
        number("RobotsPolicy: max_ttl", self.max_ttl, least=self.min_ttl, most=math.inf)
        number("RobotsPolicy: default_ttl", self.default_ttl, least=self.min_ttl, most=self.max_ttl)
        number("RobotsPolicy: refresh_ahead", self.refresh_ahead, most=_MOST_AHEAD)
        number("RobotsPolicy: retry_min", self.retry_min, least=0.1, most=math.inf)
        number("RobotsPolicy: retry_max", self.retry_max, least=self.retry_min, most=math.inf)
        number("RobotsPolicy: busy_retry_max", self.busy_retry_max, least=self.retry_min, most=math.inf)
        integer("RobotsPolicy: max_origins", self.max_origins, least=1, most=100_000_000)
        integer("RobotsPolicy: max_memory", self.max_memory, least=1 << 20, most=1 << 44)
        statuses("RobotsPolicy: denied_statuses", self.denied_statuses, least=400, most=499)
        statuses("RobotsPolicy: allowed_statuses", self.allowed_statuses, least=0, most=999)
        statuses("RobotsPolicy: retry_once_statuses", self.retry_once_statuses, least=400, most=499)
        instance("RobotsPolicy: dialect", self.dialect, Dialect, "a Dialect, such as polite.dialect(name)")


def _networks(option: str, values: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(value) for value in values)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"{option} must be a sequence of networks, got {values!r}: {error}") from error


def _http_url(option: str, url: str) -> None:
    """Raise InvalidOption if this is no URL of an HTTP server. The message shows no credentials."""
    try:
        is_http = Origin.of(url).scheme in {"http", "https"}
    except (InvalidURL, TypeError) as error:
        raise InvalidOption(f"{option}: {error}") from error
    if not is_http:
        shown = redact_url(url)
        raise InvalidOption(f"{option} must be a URL that starts with http:// or https://, got {shown!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """How robots.txt is fetched.

        >>> FetchPolicy(timeout=10.0, max_redirects=3).max_redirects
        3

    Attributes:
        timeout: seconds on the network for the whole fetch, redirects included. Waiting for a turn does not count.
        max_redirects: redirects that are followed; one more counts as a 404 (H2).
        max_bytes: octets of the decoded body that count (H9).
        allow_private: whether private addresses are permitted. Link-local addresses, metadata services of clouds, and private IPv4
            addresses inside IPv6 addresses stay blocked.
        allowed_networks: networks (CIDR) that are permitted.
        denied_networks: networks (CIDR) that are blocked, permitted or not.
        nameservers: used instead of the system's, as "address" or "address:port".
        connections: the limit of concurrent robots fetches.
        allow_downgrade: whether a redirect from https to http or ftp is followed.
        first_location: whether the first of several Location fields counts. If false, several that differ are an error.
        transfer_codings: the transfer codings that are supported.
        junk_after_gzip: whether octets after a whole gzip stream are ignored. If false, the body is corrupt.
        ca_file: a PEM file of authorities that are trusted beside the system's.
        proxy: the URL of an HTTP proxy, which then sees all requests and resolves names. The environment's proxies are never used.
        allowed: `allowed_networks`, parsed.
        denied: `denied_networks`, parsed.

    Raises:
        InvalidOption: if a value is outside of its limits.
    """

    timeout: float = 30.0
    max_redirects: int = 5
    max_bytes: int = BODY_LIMIT
    allow_private: bool = False
    allowed_networks: Sequence[str] = ()
    denied_networks: Sequence[str] = ()
    nameservers: Sequence[str] = ()
    connections: int = 100
    allow_downgrade: bool = True
    first_location: bool = True
    transfer_codings: frozenset[str] = frozenset({"chunked"})
    junk_after_gzip: bool = True
    ca_file: str | None = None
    proxy: str | None = field(default=None, repr=False)
    allowed: tuple[Network, ...] = field(init=False, repr=False)
    denied: tuple[Network, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for option in ("allow_private", "allow_downgrade", "first_location", "junk_after_gzip"):
            boolean(f"FetchPolicy: {option}", getattr(self, option))
        number("FetchPolicy: timeout", self.timeout, least=0.001, most=3_600)
        integer("FetchPolicy: max_redirects", self.max_redirects, least=0, most=MOST_REDIRECTS)
        integer("FetchPolicy: max_bytes", self.max_bytes, least=1, most=MOST_BYTES)
        integer("FetchPolicy: connections", self.connections, least=1, most=100_000)
        if self.proxy is not None:
            _http_url("FetchPolicy: proxy", self.proxy)
        object.__setattr__(self, "allowed", _networks("FetchPolicy: allowed_networks", self.allowed_networks))
        object.__setattr__(self, "denied", _networks("FetchPolicy: denied_networks", self.denied_networks))
