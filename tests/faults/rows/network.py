"""Connections, names, certificates and FTP servers that do wrong: rows of the fault matrix."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from polite.robots.reason import Reason
from tests.faults import names as dns
from tests.faults.ftp import ftp
from tests.faults.row import Row, allowed, cut_short, denied, failing, invalid, parsed
from tests.faults.stage import (
    OK,
    RULES,
    Scene,
    endless,
    headed,
    http,
    hung_up_after,
    moved,
    named,
    nobody,
    nowhere,
    ok,
    reset_after,
    silence,
    slowly,
    tls,
)

CONNECTIONS = [
    denied("79", "a connection without a response", Reason.TIMEOUT, http(silence)),
    denied("80", "headers octet by octet", Reason.TIMEOUT, http(slowly(ok(RULES, b"X: " + b"y" * 500)))),
    denied("81", "a body octet by octet", Reason.TIMEOUT, http(slowly(ok(RULES * 10)))),
    denied("82", "closed before the reply", Reason.CONNECTION_LOST, b""),
    denied("83", "closed within a header", Reason.CONNECTION_LOST, OK + b"Content-Le"),
    denied("84", "reset at once", Reason.CONNECTION_LOST, http(reset_after(b""))),
    cut_short("85", "reset within the body", http(reset_after(headed(b"Content-Length: 100")))),
    cut_short(
        "85b",
        "reset within a body that the end of the connection ends",
        http(reset_after(OK + b"\r\n" + RULES)),
    ),
    cut_short(
        "85c",
        "TLS cut without a close_notify within a body that the end of the connection ends",
        tls(hung_up_after(OK + b"\r\n" + RULES)),
    ),
    parsed(
        "85d", "TLS cut without a close_notify after a body of the announced length", tls(hung_up_after(ok()))
    ),
    parsed("85e", "a close_notify that ends a body without a length", tls(OK + b"\r\n" + RULES)),
    parsed("86", "a second response after the first", ok() + ok(b"User-agent: *\nAllow: /\n")),
    parsed(
        "87",
        "closed after each response without notice: each hop has its own connection",
        http(moved(b"/there"), ok()),
        hits=2,
    ),
]


def unresolved(number: str, fault: str, reason: Reason, answer: Any) -> Row:
    return denied(number, fault, reason, named({"site.test": answer}), hits=0)


NAMES = [
    denied("88a", "a connection that is refused", Reason.CONNECTION_REFUSED, nobody, hits=0),
    denied("88b", "a host without a route", Reason.HOST_UNREACHABLE, nowhere, hits=0),
    denied("89", "NXDOMAIN", Reason.DNS_NXDOMAIN, named({}), hits=0),
    unresolved("90", "SERVFAIL", Reason.DNS_SERVFAIL, dns.SERVFAIL),
    unresolved("91", "a nameserver that does not respond", Reason.DNS_TIMEOUT, dns.SILENCE),
    unresolved("92a", "NODATA: the name has no address", Reason.DNS_NODATA, ()),
    unresolved("92b", "REFUSED", Reason.DNS_REFUSED, dns.REFUSED),
    unresolved("92c", "a DNS response that cannot be parsed", Reason.DNS_BAD_ANSWER, dns.GARBAGE),
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
    unresolved(
        "94",
        "a name that led to a public address at an earlier look-up, and leads to a private one now",
        Reason.ADDRESS_REFUSED,
        ("10.0.0.1",),
    ),
]


def distrusted(number: str, fault: str, reason: Reason, **certificate: Any) -> Row:
    return denied(number, fault, reason, tls(**certificate), hits=0)


def misnamed(number: str, fault: str, identity: str, name: str | None = "site.test") -> Row:
    return distrusted(number, fault, Reason.TLS_WRONG_HOST, identity=identity, name=name)


# What expects no TLS.
plain = partial(http, scheme="https", hears=b"")

CERTIFICATES = [
    distrusted("95", "a certificate that has expired", Reason.TLS_EXPIRED, years=(2010, 2011)),
    distrusted("96", "a certificate that is not valid yet", Reason.TLS_NOT_YET_VALID, years=(2990, 2991)),
    misnamed("97a", "a certificate for another address", "127.0.0.9", name=None),
    misnamed("97b", "a certificate for another name", "other.test"),
    distrusted("98", "a certificate of an unknown authority", Reason.TLS_UNTRUSTED, trusted=False),
    misnamed("99", "a certificate for *.test, of all names", "*.test"),
    parsed("99b", "a valid certificate", tls(identity="site.test", name="site.test")),
    denied(
        "100",
        "a peer that rejects each TLS version of polite",
        Reason.TLS_PROTOCOL,
        plain(b"\x15\x03\x01\x00\x02\x02\x46"),
    ),
    denied("100b", "plain HTTP where TLS is expected", Reason.TLS_PROTOCOL, plain(ok())),
    denied("101", "a peer that never responds to the handshake", Reason.TIMEOUT, plain(silence)),
]


# What is no FTP server, where one is expected.
foreign = partial(http, scheme="ftp", hears=b"")


def spoken(replies: Mapping[str, Any] | None = None, **data: Any) -> Scene:
    return foreign(ftp(replies, **data))


def endless_reply(number: str, fault: str, command: str, start: bytes, more: bytes) -> Row:
    replies = spoken({command: endless(start, more)})
    return denied(number, fault, Reason.HEAD_TOO_LARGE, replies, heavy=True)


async def _unconfirmed(_: Any, writer: Any) -> None:
    writer.close()


FTP = [
    parsed("102", "FTP: the file", spoken()),
    allowed("102a", "FTP: 550", spoken({"RETR": b"550 no such file\r\n"})),
    denied("102b", "FTP: 421 as greeting", Reason.FTP_BUSY, spoken({"": b"421 too many users\r\n"})),
    denied("102c", "FTP: 530 to the login", Reason.FTP_LOGIN_REFUSED, spoken({"USER": b"530 no\r\n"})),
    endless_reply("102d", "FTP: a greeting without end", "", b"", b"220-and another thing\r\n" * 50),
    endless_reply("102e", "FTP: a line without end", "", b"220 ", b"x" * 5_000),
    endless_reply("102f", "FTP: a reply without end to a command", "PASS", b"230-", b"welcome\r\n" * 50),
    denied("102g", "FTP: silence instead of a greeting", Reason.TIMEOUT, foreign(silence)),
    denied("102h", "FTP: data octet by octet", Reason.TIMEOUT, spoken(data=slowly(RULES * 10))),
    cut_short("102i", "FTP: data reset on the way", spoken(data=reset_after(RULES))),
    cut_short("102j", "FTP: 426 after the data", spoken({"END": b"426 broken off\r\n"})),
    cut_short("102k", "FTP: closed before it confirms the end of the data", spoken({"END": _unconfirmed})),
    denied(
        "102l",
        "FTP: another host for the data, in the response to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken({"EPSV": b"227 (10,0,0,1,4,1)\r\n"}),
    ),
    denied(
        "102m",
        "FTP: another host for the data, within the reply to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken({"EPSV": b"229 (|1|10.0.0.1|1025|)\r\n"}),
    ),
    denied(
        "102n", "FTP: no extended passive mode", Reason.FTP_NO_PASSIVE, spoken({"EPSV": b"502 what?\r\n"})
    ),
    invalid("102o", "FTP: port 0 for the data", spoken({"EPSV": b"229 (|||0|)\r\n"})),
    invalid("102p", "FTP: no reply, but HTTP", foreign(ok())),
    denied("102q", "FTP: closed within a reply", Reason.CONNECTION_LOST, foreign(b"220 he")),
    failing("102r", "FTP: 550 to the type", spoken({"TYPE": b"550 no\r\n"})),
    parsed(
        "102s",
        "FTP: a file without end: the first 512,000 octets count",
        spoken(data=endless(b"", RULES * 500)),
        heavy=True,
    ),
]
