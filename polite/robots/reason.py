"""Why a decision or a robots fetch came out as it did: one enum, to switch on instead of parsing messages."""

from enum import Enum


class Reason(Enum):
    """The reason of a `Decision`, or of what a robots fetch came to. The value is a sentence's worth of explanation."""

    # What decided about a path.
    RULE = "a rule of the file matches"
    NO_RULE = "no rule of the group matches"
    NO_GROUP = "the file has no group for this agent, and none for *"
    ROBOTS_PATH = "/robots.txt itself is always allowed (RFC 9309, 2.2.2)"
    UNAVAILABLE = "the site has no robots.txt (RFC 9309, 2.3.1.3)"
    UNREACHABLE = "robots.txt could not be had: all is disallowed for now (RFC 9309, 2.3.1.4)"
    UNREACHABLE_TOO_LONG = "robots.txt has been unreachable for longer than the policy's limit"

    # What a robots fetch came to: an answer.
    OK = "the server answered with a file"
    CLIENT_ERROR = "the server answered 4xx"
    SERVER_ERROR = "the server answered 5xx"
    INFERRED_MISSING = "the server answered 5xx, as it does for any page that does not exist"
    ODD_STATUS = "the server answered with a status that means nothing for robots.txt"
    TOO_MANY_REDIRECTS = "more redirects than are followed"
    REDIRECT_LOOP = "the redirects came back to a URL already asked"
    REDIRECT_WITHOUT_TARGET = "a redirect without a Location"
    REDIRECT_INVALID = "a redirect to something that is no URL"
    REDIRECT_AMBIGUOUS = "a redirect to several places"
    REDIRECT_SCHEME = "a redirect to a scheme that has no transport"
    REDIRECT_UNSAFE = "a redirect to a file of this machine, to a script, or with a command in it"
    REDIRECT_DOWNGRADE = "a redirect from https to a scheme that nothing protects"
    SCHEME_UNKNOWN = "no transport speaks the scheme"

    # No connection.
    ADDRESS_REFUSED = "the address is one that is never dialled"
    PROXY_REFUSED = "the way leads through a proxy that was not asked for"
    PROXY_FAILED = "the proxy did not let us through"
    DNS_NXDOMAIN = "the name does not exist"
    DNS_NODATA = "the name exists, and has no address"
    DNS_SERVFAIL = "the nameserver could not resolve the name"
    DNS_TIMEOUT = "the nameserver did not answer in time"
    DNS_REFUSED = "the nameserver refused to answer"
    DNS_BAD_ANSWER = "the nameserver's answer cannot be read"
    DNS_FAILURE = "the name could not be resolved"
    CONNECTION_REFUSED = "nothing listens at the address"
    HOST_UNREACHABLE = "no way leads to the address"
    CONNECT_FAILED = "no connection"
    TLS_EXPIRED = "the certificate has expired"
    TLS_NOT_YET_VALID = "the certificate is not valid yet"
    TLS_WRONG_HOST = "the certificate is another host's"
    TLS_UNTRUSTED = "nobody we trust vouches for the certificate"
    TLS_PROTOCOL = "the two sides agree on no way to encrypt"
    TLS_FAILURE = "no secure connection"

    # An answer that nobody can rely on.
    CONNECTION_LOST = "the connection was closed before the answer"
    TIMEOUT = "the deadline passed"
    PROTOCOL_ERROR = "the answer is not what the protocol allows"
    HEAD_TOO_LARGE = "what comes before the file is more than is read"
    BODY_CUT_SHORT = "the body ended before its end"
    BODY_CORRUPT = "the body's coding is broken"
    CODING_UNKNOWN = "the body has a coding that was not asked for"
    TRANSFER_CODING_UNKNOWN = "the body comes in pieces of a kind that is not read"
    FTP_LOGIN_REFUSED = "the FTP server lets nobody in without an account"
    FTP_BUSY = "the FTP server cannot serve the file now"
    FTP_NO_PASSIVE = "the FTP server does not speak extended passive mode (RFC 2428)"
    INTERNAL_ERROR = "the transport failed in a way it should not"

    @property
    def option(self) -> str:
        """The option that changes what this comes to, as "Policy.field"; every failure ends with `unreachable_limit` (H6)."""
        return _OPTIONS.get(self, "RobotsPolicy.unreachable_limit")

    @property
    def hostile(self) -> bool:
        """Whether somebody tried to lead the crawler where it must not go: worth an alarm, not only a log line."""
        return self in _HOSTILE

    @property
    def may_pass(self) -> bool:
        """Whether waiting may help. If not, only an option changes what the fetch comes to, and a frontier does not try again."""
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
    Reason.ADDRESS_REFUSED: "FetchPolicy.allow_private",
    Reason.PROXY_REFUSED: "FetchPolicy.proxy",
    Reason.PROXY_FAILED: "FetchPolicy.proxy",
    Reason.TLS_UNTRUSTED: "FetchPolicy.ca_file",
    Reason.TIMEOUT: "FetchPolicy.timeout",
    Reason.TRANSFER_CODING_UNKNOWN: "FetchPolicy.transfer_codings",
    Reason.FTP_LOGIN_REFUSED: "RobotsPolicy.allowed_statuses",
} | dict.fromkeys(
    (
        Reason.DNS_NXDOMAIN,
        Reason.DNS_NODATA,
        Reason.DNS_SERVFAIL,
        Reason.DNS_TIMEOUT,
        Reason.DNS_REFUSED,
        Reason.DNS_BAD_ANSWER,
        Reason.DNS_FAILURE,
    ),
    "FetchPolicy.nameservers",
)

_HOSTILE = frozenset({Reason.ADDRESS_REFUSED, Reason.REDIRECT_UNSAFE})

# Decided by an option of ours, not by the network or by the server's state at that moment. All others are tried again: a
# certificate is renewed, a name is registered, and a server that answers nonsense is repaired.
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
