"""Reason: why a decision or a robots fetch had its result, as one enum."""

from enum import Enum


class Reason(Enum):
    """The reason of a `Decision` or of the result of a robots fetch.

    The value explains it in words.

        >>> Reason.NO_RULE.value
        'no rule of the group matches'
        >>> Reason.TIMEOUT.option
        'FetchPolicy.timeout'
    """

    # What decided about a path.
    RULE = "a rule of the file matches"
    NO_RULE = "no rule of the group matches"
    NO_GROUP = "the file has no group for this agent, and none for *"
    ROBOTS_PATH = "/robots.txt itself is always allowed (RFC 9309, 2.2.2)"
    UNAVAILABLE = "the site has no robots.txt (RFC 9309, 2.3.1.3)"
    UNREACHABLE = "robots.txt is unreachable, so every URL is disallowed for now (RFC 9309, 2.3.1.4)"
    UNREACHABLE_TOO_LONG = "robots.txt has been unreachable for longer than the policy's limit"
    OPERATOR = "an operator's order"

    # The result of a robots fetch: a response.
    OK = "the server returned a file"
    CLIENT_ERROR = "the server returned 4xx"
    SERVER_ERROR = "the server returned 5xx"
    INFERRED_MISSING = "the server returned 5xx, as it does for any page that does not exist"
    ODD_STATUS = "the server returned a status that has no meaning for robots.txt"
    TOO_MANY_REDIRECTS = "there were more redirects than the limit"
    REDIRECT_LOOP = "the redirects form a loop"
    REDIRECT_WITHOUT_TARGET = "a redirect without a Location"
    REDIRECT_INVALID = "a redirect to an invalid URL"
    REDIRECT_AMBIGUOUS = "a redirect with several different Locations"
    REDIRECT_SCHEME = "a redirect to a scheme that has no transport"
    REDIRECT_UNSAFE = "a redirect to a local file, to a script, or to a URL that contains a command"
    REDIRECT_DOWNGRADE = "a redirect from https to a scheme without encryption"
    SCHEME_UNKNOWN = "no transport speaks the scheme"

    # No connection.
    ADDRESS_REFUSED = "the address is blocked"
    PROXY_REFUSED = "the connection would use a proxy that was not configured"
    PROXY_FAILED = "the proxy refused the request or failed"
    DNS_NXDOMAIN = "the name does not exist"
    DNS_NODATA = "the name exists, and has no address"
    DNS_SERVFAIL = "the nameserver could not resolve the name"
    DNS_TIMEOUT = "the nameserver did not respond in time"
    DNS_REFUSED = "the nameserver refused the query"
    DNS_BAD_ANSWER = "the nameserver's response is malformed"
    DNS_FAILURE = "the name could not be resolved"
    CONNECTION_REFUSED = "the server refused the connection"
    HOST_UNREACHABLE = "there is no route to the address"
    CONNECT_FAILED = "the connection could not be opened"
    TLS_EXPIRED = "the certificate has expired"
    TLS_NOT_YET_VALID = "the certificate is not valid yet"
    TLS_WRONG_HOST = "the certificate belongs to another host"
    TLS_UNTRUSTED = "the certificate is not signed by a trusted authority"
    TLS_PROTOCOL = "client and server have no TLS version or cipher in common"
    TLS_FAILURE = "the TLS handshake failed"

    # An unreliable response.
    CONNECTION_LOST = "the connection was closed before the response was complete"
    TIMEOUT = "the fetch did not finish before its deadline"
    PROTOCOL_ERROR = "the response violates the protocol"
    HEAD_TOO_LARGE = "the response head is larger than the limit"
    BODY_CUT_SHORT = "the body is incomplete"
    BODY_CORRUPT = "the body's coding is corrupt"
    CODING_UNKNOWN = "the body has a content coding that was not requested"
    TRANSFER_CODING_UNKNOWN = "the body has a transfer coding that is not supported"
    FTP_LOGIN_REFUSED = "the FTP server does not accept anonymous logins"
    FTP_BUSY = "the FTP server cannot serve the file now"
    FTP_NO_PASSIVE = "the FTP server does not support extended passive mode (RFC 2428)"
    INTERNAL_ERROR = "the transport raised an unexpected error"
    SIGNER_FAILED = "the crawler's own signer failed, so no request was sent"

    @property
    def option(self) -> str:
        """The option that changes this result, as "Policy.field".

        The default is `unreachable_limit`, which ends every failure (H6).
        """
        return _OPTIONS.get(self, "RobotsPolicy.unreachable_limit")

    @property
    def hostile(self) -> bool:
        """Whether it may be an attack on the crawler, which deserves an alert, not only a log line."""
        return self in _HOSTILE

    @property
    def may_pass(self) -> bool:
        """Whether waiting may help.

        If not, only an option changes the result, and a frontier does not retry.
        """
        return self not in _LASTING


_OPTIONS = {
    Reason.CLIENT_ERROR: "RobotsPolicy.denied_statuses",
    Reason.INFERRED_MISSING: "RobotsPolicy.infer_missing",
    Reason.ODD_STATUS: "RobotsPolicy.allowed_statuses",
    Reason.TOO_MANY_REDIRECTS: "FetchPolicy.max_redirects",
    Reason.REDIRECT_WITHOUT_TARGET: "RobotsPolicy.deny_bad_redirects",
    Reason.REDIRECT_INVALID: "RobotsPolicy.deny_bad_redirects",
    Reason.REDIRECT_AMBIGUOUS: "FetchPolicy.first_location",
    Reason.REDIRECT_SCHEME: "open_gate(transports=...)",
    Reason.REDIRECT_DOWNGRADE: "FetchPolicy.allow_downgrade",
    Reason.SCHEME_UNKNOWN: "open_gate(transports=...)",
    Reason.SIGNER_FAILED: "open_gate(signer=...)",
    Reason.ADDRESS_REFUSED: "FetchPolicy.allow_private",
    Reason.PROXY_REFUSED: "FetchPolicy.proxy",
    Reason.PROXY_FAILED: "FetchPolicy.proxy",
    Reason.TLS_UNTRUSTED: "FetchPolicy.ca_file",
    Reason.TIMEOUT: "FetchPolicy.timeout",
    Reason.TRANSFER_CODING_UNKNOWN: "FetchPolicy.transfer_codings",
    Reason.FTP_LOGIN_REFUSED: "RobotsPolicy.allowed_statuses",
} | {each: "FetchPolicy.nameservers" for each in Reason if each.name.startswith("DNS_")}

_HOSTILE = frozenset({Reason.ADDRESS_REFUSED, Reason.REDIRECT_UNSAFE})

# Decided by an option of ours, not by the network or the server's current state. All others are retried: certificates are
# renewed, names are registered, servers are repaired.
_LASTING = frozenset(
    {
        Reason.ADDRESS_REFUSED,
        Reason.PROXY_REFUSED,
        Reason.REDIRECT_DOWNGRADE,
        Reason.REDIRECT_SCHEME,
        Reason.REDIRECT_UNSAFE,
        Reason.SCHEME_UNKNOWN,
    }
)
