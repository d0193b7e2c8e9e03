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

    # What a robots fetch came to.
    OK = "the server answered with a file"
    CLIENT_ERROR = "the server answered 4xx"
    SERVER_ERROR = "the server answered 5xx"
    ODD_STATUS = "the server answered with a status that means nothing for robots.txt"
    TOO_MANY_REDIRECTS = "more redirects than are followed"
    REDIRECT_LOOP = "the redirects came back to a URL already asked"
    REDIRECT_WITHOUT_TARGET = "a redirect without a Location"
    REDIRECT_INVALID = "a redirect to something that is no URL"
    REDIRECT_SCHEME = "a redirect to a scheme that has no transport"
    SCHEME_UNKNOWN = "no transport speaks the scheme"
    ADDRESS_REFUSED = "the address is one that is never dialled"
    DNS_NXDOMAIN = "the name does not exist"
    DNS_FAILURE = "the name could not be resolved"
    CONNECT_FAILED = "no connection, or one that was lost before the answer"
    TLS_FAILURE = "no secure connection"
    TIMEOUT = "the deadline passed"
    PROTOCOL_ERROR = "the answer is not what the protocol allows"
    BODY_CUT_SHORT = "the body ended before its end"
    BODY_CORRUPT = "the body's coding is broken"
    CODING_UNKNOWN = "the body has a coding that was not asked for"
    INTERNAL_ERROR = "the transport failed in a way it should not"
