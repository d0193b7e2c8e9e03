"""Addresses that nobody answers at, and names that lead nowhere: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults import names as dns
from tests.faults.row import denied, parsed
from tests.faults.stage import named, nobody, nowhere

NAMES = [
    denied("88a", "a connection that is refused", Reason.CONNECTION_REFUSED, nobody, hits=0),
    denied("88b", "a host without a route", Reason.HOST_UNREACHABLE, nowhere, hits=0),
    denied("89", "NXDOMAIN", Reason.DNS_NXDOMAIN, named({}), hits=0),
    denied("90", "SERVFAIL", Reason.DNS_SERVFAIL, named({"site.test": dns.SERVFAIL}), hits=0),
    denied(
        "91",
        "a nameserver that does not respond",
        Reason.DNS_TIMEOUT,
        named({"site.test": dns.SILENCE}),
        hits=0,
    ),
    denied("92a", "NODATA: the name has no address", Reason.DNS_NODATA, named({"site.test": ()}), hits=0),
    denied("92b", "REFUSED", Reason.DNS_REFUSED, named({"site.test": dns.REFUSED}), hits=0),
    denied(
        "92c",
        "a DNS response that cannot be parsed",
        Reason.DNS_BAD_ANSWER,
        named({"site.test": dns.GARBAGE}),
        hits=0,
    ),
    parsed("93a", "an IPv4 address only", named({"site.test": ("127.0.0.1",)})),
    parsed("93b", "an IPv6 address only", named({"site.test": ("::1",)}, host="::1")),
    parsed(
        "93c",
        "an IPv6 address without a server, and an IPv4 address",
        named({"site.test": ("::1", "127.0.0.1")}),
    ),
    parsed(
        "93d",
        "SERVFAIL for the IPv6 address only",
        named({("site.test", dns.A): ("127.0.0.1",), ("site.test", dns.AAAA): dns.SERVFAIL}),
    ),
    denied(
        "94",
        "a name that led to a public address at an earlier look-up, and leads to a private one now",
        Reason.ADDRESS_REFUSED,
        named({"site.test": ("10.0.0.1",)}),
        hits=0,
    ),
]
