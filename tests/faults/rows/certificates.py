"""Whom TLS lets us trust: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults.row import denied, parsed
from tests.faults.stage import http, ok, silence, tls

CERTIFICATES = [
    denied("95", "a certificate that has expired", Reason.TLS_EXPIRED, tls(years=(2010, 2011)), hits=0),
    denied(
        "96", "a certificate that is not valid yet", Reason.TLS_NOT_YET_VALID, tls(years=(2990, 2991)), hits=0
    ),
    denied(
        "97a", "a certificate for another address", Reason.TLS_WRONG_HOST, tls(identity="127.0.0.9"), hits=0
    ),
    denied(
        "97b",
        "a certificate for another name",
        Reason.TLS_WRONG_HOST,
        tls(identity="other.test", name="site.test"),
        hits=0,
    ),
    denied("98", "a certificate of an unknown authority", Reason.TLS_UNTRUSTED, tls(trusted=False), hits=0),
    denied(
        "99",
        "a certificate for *.test, of all names",
        Reason.TLS_WRONG_HOST,
        tls(identity="*.test", name="site.test"),
        hits=0,
    ),
    parsed("99b", "a valid certificate", tls(identity="site.test", name="site.test")),
    denied(
        "100",
        "a peer that rejects each TLS version of polite",
        Reason.TLS_PROTOCOL,
        http(b"\x15\x03\x01\x00\x02\x02\x46", scheme="https", hears=b""),
    ),
    denied(
        "100b", "plain HTTP where TLS is expected", Reason.TLS_PROTOCOL, http(ok(), scheme="https", hears=b"")
    ),
    denied(
        "101",
        "a peer that never responds to the handshake",
        Reason.TIMEOUT,
        http(silence, scheme="https", hears=b""),
    ),
]
