"""The fault matrix: what servers do wrong, and exactly what each of it comes to. The tests and docs/faults.md are made from it."""

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

from polite.robots.dialect import GOOGLE
from polite.robots.reason import Reason
from tests.faults import names as dns
from tests.faults.ftp import ftp
from tests.faults.stage import (
    OK,
    RULES,
    Scene,
    answered,
    chunked,
    endless,
    http,
    led_on,
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


class Verdict(Enum):
    """What an answer means (RFC 9309, 2.3.1)."""

    PARSE = "the rules of the file apply"
    ALLOW = "unavailable: no restriction"
    DENY = "unreachable: all is disallowed for now"


PARSE, ALLOW, DENY = Verdict


@dataclass(frozen=True)
class Row:
    """One fault. `allowed`: whether /private may be fetched then. `pure`: what differs with aiohttp's pure-Python parser."""

    number: str
    fault: str
    verdict: Verdict
    reason: Reason
    scene: Scene
    hits: int = 1
    allowed: bool = False
    asked: bytes = b""
    pure: tuple[Verdict, Reason] | None = None
    option: str = ""
    robots: Mapping[str, Any] = field(default_factory=dict)
    heavy: bool = False

    def outcome(self, *, pure: bool) -> tuple[Verdict, Reason]:
        return self.pure if pure and self.pure is not None else (self.verdict, self.reason)


def parsed(number: str, fault: str, scene: Scene, **more: Any) -> Row:
    return Row(number, fault, PARSE, Reason.OK, scene, **more)


def allowed(number: str, fault: str, scene: Scene, reason: Reason = Reason.CLIENT_ERROR, **more: Any) -> Row:
    return Row(number, fault, ALLOW, reason, scene, allowed=True, **more)


def denied(number: str, fault: str, reason: Reason, scene: Scene, **more: Any) -> Row:
    return Row(number, fault, DENY, reason, scene, **more)


def followed(number: str, fault: str, location: bytes, asked: bytes, **more: Any) -> Row:
    """A redirect that is followed: `asked` is the second request's line."""
    scene = more.pop("scene", http)(moved(location), ok())
    return parsed(number, fault, scene, hits=2, asked=asked, **more)


GZIP = b"Content-Encoding: gzip"
PACKED = gzip.compress(RULES)
LONG = b"User-agent: *\n" + b"Disallow: /private\n"


def bomb() -> Any:
    """512 MiB of comment behind the rules, made while it is sent."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(RULES) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same input gives the same octets: one MiB stands for all.
    mebibyte = packer.compress(b"#" * 1_048_576) + packer.flush(zlib.Z_FULL_FLUSH)
    return many(mebibyte, 512, before=OK + GZIP + b"\r\n\r\n" + start)


def many(line: bytes, times: int, *, before: bytes = OK, after: bytes = b"") -> Any:
    """The same line so many times, made while it is sent."""

    async def talk(_: Any, writer: Any) -> None:
        writer.write(before)
        for _ in range(times // 16):
            writer.write(line * 16)
            await writer.drain()
        writer.write(after)

    return talk


BODIES = [
    parsed("1", "200 with the file as text/plain", http(ok(RULES, b"Content-Type: text/plain"))),
    parsed("2", "200 without a Content-Type", http(ok())),
    parsed("3", "200 with an empty body", http(ok(b"")), allowed=True),
    parsed("4", "203", http(ok(status=b"203 Non-Authoritative Information"))),
    parsed(
        "5",
        "200 with HTML (a page instead of a 404)",
        http(ok(b"<html>\n<p>User-agent: *</p>\n")),
        allowed=True,
    ),
    parsed("6", "200 with binary data", http(ok(bytes(range(256)) * 20)), allowed=True),
    parsed(
        "7",
        "200 with NUL octets: no line ends",
        http(ok(b"User-agent: *\nDis\0allow: /\nDisallow: /private")),
    ),
    parsed("8", "200 that begins with a byte order mark", http(ok(b"\xef\xbb\xbf" + RULES))),
    parsed(
        "9", "200 in UTF-16: no rule can be read", http(ok(RULES.decode().encode("utf-16"))), allowed=True
    ),
    parsed("10a", "lines that end in CR", http(ok(RULES.replace(b"\n", b"\r")))),
    parsed(
        "10b",
        "lines that end in CR, LF and CR LF in turn",
        http(ok(b"User-agent: *\r\nAllow: /x\rDisallow: /private\n")),
    ),
    parsed(
        "11",
        "one line of 600 KB: the first 512,000 octets count, and a Disallow that was cut forbids more",
        http(ok(RULES + b"Disallow: /" + b"x" * 600_000)),
        heavy=True,
    ),
    parsed(
        "12",
        "a million lines: the first 512,000 octets count",
        http(many(LONG, 1_000_000, before=OK + b"\r\n")),
        heavy=True,
    ),
    parsed("13", "a body without end", http(endless(OK + b"\r\n", LONG * 500)), heavy=True),
    parsed(
        "14",
        "a chunked body without end",
        http(endless(chunked(b""), b"%x\r\n" % (len(LONG) * 500) + LONG * 500 + b"\r\n")),
        heavy=True,
    ),
]

STATUSES = [
    parsed("15a", "204", http(answered(b"204 No Content")), allowed=True),
    parsed("15b", "205", http(answered(b"205 Reset Content")), allowed=True),
    Row(
        "16",
        "204 with a body",
        DENY,
        Reason.PROTOCOL_ERROR,
        http(ok(status=b"204 No Content")),
        pure=(PARSE, Reason.OK),
    ),
    denied(
        "17a",
        "206 that nobody asked for, with a part",
        Reason.ODD_STATUS,
        http(ok(RULES, b"Content-Range: bytes 0-32/99", status=b"206 Partial Content")),
        option="RobotsPolicy.allowed_statuses",
    ),
    parsed(
        "17b",
        "206 that nobody asked for, with the whole",
        http(
            ok(
                RULES,
                b"Content-Range: bytes 0-%d/%d" % (len(RULES) - 1, len(RULES)),
                status=b"206 Partial Content",
            )
        ),
    ),
    denied(
        "18",
        "304 that nobody asked for, with no copy at hand",
        Reason.ODD_STATUS,
        http(answered(b"304 Not Modified")),
        option="RobotsPolicy.allowed_statuses",
    ),
    denied(
        "19a",
        "300 without a Location",
        Reason.REDIRECT_WITHOUT_TARGET,
        http(moved(None, status=b"300 Multiple Choices")),
        option="RobotsPolicy.deny_bad_redirects",
    ),
    denied(
        "19b",
        "302 with an empty Location",
        Reason.REDIRECT_WITHOUT_TARGET,
        http(moved(b"")),
        option="RobotsPolicy.deny_bad_redirects",
    ),
]

REDIRECTS = [
    followed("20", "Location: a relative path", b"there.txt?a=b", b"GET /there.txt?a=b HTTP/1.1"),
    followed("21", "Location: //host/path", b"//{here}/there", b"GET /there HTTP/1.1"),
    followed("22", "Location with a fragment: it is dropped", b"/there#part", b"GET /there HTTP/1.1"),
    followed(
        "23",
        "Location with credentials: they are dropped",
        b"http://user:secret@{here}/there",
        b"GET /there HTTP/1.1",
    ),
    followed("24", "Location with dot segments", b"/a/../b/./there", b"GET /b/there HTTP/1.1"),
    followed(
        "25", "Location: \\\\host\\path, as browsers read it", b"\\\\{here}\\there", b"GET /there HTTP/1.1"
    ),
    followed(
        "26",
        "Location with an internationalised host",
        "http://bücher.test:{port}/there".encode(),
        b"GET /there HTTP/1.1",
        scene=partial(http, names={("xn--bcher-kva.test", dns.A): ("127.0.0.1",)}),
    ),
    followed("27", "Location with a path in raw UTF-8", "/bücher".encode(), b"GET /b%C3%BCcher HTTP/1.1"),
    followed(
        "28",
        "Location with octets that are not UTF-8: percent-encoded, as they are",
        b"/\xff\xfe",
        b"GET /%FF%FE HTTP/1.1",
    ),
    denied(
        "28b",
        "Location with such octets in its host",
        Reason.REDIRECT_INVALID,
        http(moved(b"http://\xff\xfe/")),
        option="RobotsPolicy.deny_bad_redirects",
    ),
    denied("29", "Location: file:///etc/passwd", Reason.REDIRECT_UNSAFE, http(moved(b"file:///etc/passwd"))),
    denied("30", "Location: javascript:", Reason.REDIRECT_UNSAFE, http(moved(b"javascript:alert(1)"))),
    denied("31", "Location: data:", Reason.REDIRECT_UNSAFE, http(moved(b"data:text/plain,Allow:/"))),
    parsed(
        "32",
        "Location: ftp://, which is spoken",
        led_on(
            lambda there: http(moved(b"ftp://" + there.encode() + b"/there")),
            http(ftp(), scheme="ftp", hears=b""),
        ),
        hits=2,
        option="open_gate(transports=...)",
    ),
    denied(
        "32b",
        "Location to a scheme that nobody speaks",
        Reason.REDIRECT_SCHEME,
        http(moved(b"gopher://{here}/0")),
        option="open_gate(transports=...)",
    ),
    denied(
        "33a",
        "Location to a private address",
        Reason.ADDRESS_REFUSED,
        http(moved(b"http://10.0.0.1/robots.txt")),
    ),
    denied(
        "33b",
        "Location to a name that leads to a private address",
        Reason.ADDRESS_REFUSED,
        http(moved(b"http://inner.test/"), names={("inner.test", dns.A): ("192.168.0.1",)}),
    ),
    denied(
        "34a",
        "Location to a cloud's metadata address",
        Reason.ADDRESS_REFUSED,
        http(moved(b"http://169.254.169.254/latest/meta-data/")),
    ),
    denied(
        "34b",
        "Location to a name of the metadata address",
        Reason.ADDRESS_REFUSED,
        http(moved(b"http://meta.test/"), names={("meta.test", dns.A): ("169.254.169.254",)}),
    ),
    denied(
        "35",
        "Location with a port out of range",
        Reason.REDIRECT_INVALID,
        http(moved(b"http://{here}9999/")),
        option="RobotsPolicy.deny_bad_redirects",
    ),
    followed(
        "36",
        "%0d%0a in the Location: it stays encoded",
        b"/there%0d%0aX-Evil:%201",
        b"GET /there%0d%0aX-Evil:%201 HTTP/1.1",
    ),
    parsed(
        "37",
        "five redirects, one of them to another host: the rules hold for the origin first asked",
        named(
            {("site.test", dns.A): ("127.0.0.1",), ("away.test", dns.A): ("127.0.0.1",)},
            *(moved(b"/%d" % hop) for hop in (1, 2)),
            moved(b"http://away.test:{port}/3"),
            moved(b"/4"),
            moved(b"/5"),
            ok(),
        ),
        hits=6,
    ),
    allowed(
        "38a",
        "six redirects",
        http(*(moved(b"/%d" % hop) for hop in range(6))),
        Reason.TOO_MANY_REDIRECTS,
        hits=6,
        option="FetchPolicy.max_redirects",
    ),
    allowed(
        "38b",
        "redirects in a circle",
        http(moved(b"/there"), moved(b"/robots.txt")),
        Reason.REDIRECT_LOOP,
        hits=2,
    ),
    parsed(
        "39a",
        "a redirect from https to http: followed, and recorded",
        led_on(lambda there: tls(moved(b"http://" + there.encode() + b"/there")), http(ok())),
        hits=2,
        option="FetchPolicy.allow_downgrade",
    ),
    denied(
        "39b",
        "a redirect from https to http where the policy does not allow it",
        Reason.REDIRECT_DOWNGRADE,
        led_on(
            lambda there: tls(moved(b"http://" + there.encode() + b"/there"), allow_downgrade=False),
            http(ok()),
        ),
        option="FetchPolicy.allow_downgrade",
    ),
    followed(
        "40a",
        "two Location fields: the first counts",
        b"/there\r\nLocation: /elsewhere",
        b"GET /there HTTP/1.1",
        option="FetchPolicy.first_location",
    ),
    denied(
        "40b",
        "two Location fields where the policy does not let the first count",
        Reason.REDIRECT_AMBIGUOUS,
        http(moved(b"/there", b"Location: /elsewhere"), fetching={"first_location": False}),
        option="FetchPolicy.first_location",
    ),
    parsed(
        "41",
        "Refresh, meta and script redirects: the page itself is read",
        http(
            ok(
                RULES
                + b"<meta http-equiv=refresh content='0; url=/there'><script>location='/there'</script>\n",
                b"Refresh: 0; url=/there",
            )
        ),
    ),
]

REFUSALS = [
    *(
        allowed(f"42-{status}", f"{status}", http(answered(b"%d X" % status)))
        for status in (400, 404, 410, 418, 426, 451, 499)
    ),
    *(
        allowed(
            f"43-{status}",
            f"{status}",
            http(answered(b"%d X" % status)),
            option="RobotsPolicy.denied_statuses",
        )
        for status in (401, 403)
    ),
    denied(
        "43-denied",
        "403 where the policy denies it",
        Reason.CLIENT_ERROR,
        http(answered(b"403 Forbidden")),
        robots={"denied_statuses": frozenset({403})},
        option="RobotsPolicy.denied_statuses",
    ),
    denied(
        "44-407",
        "407: our own proxy speaks, not the site",
        Reason.PROXY_FAILED,
        http(answered(b"407 Proxy Authentication Required")),
        option="FetchPolicy.proxy",
    ),
    *(
        allowed(
            f"44-{status}",
            f"{status}, asked once more, and again",
            http(answered(b"%d X" % status)),
            hits=2,
            option="RobotsPolicy.retry_once_statuses",
        )
        for status in (408, 421, 425)
    ),
    parsed(
        "44-then",
        "408, asked once more, then the file",
        http(answered(b"408 Request Timeout"), ok()),
        hits=2,
        option="RobotsPolicy.retry_once_statuses",
    ),
    allowed(
        "45a",
        "429 with Retry-After: no restriction, and the origin rests as it asks",
        http(answered(b"429 Too Many Requests", b"Retry-After: 77")),
        option="RobotsPolicy.denied_statuses",
    ),
    denied(
        "45b",
        "429 in the dialect google",
        Reason.CLIENT_ERROR,
        http(answered(b"429 Too Many Requests", b"Retry-After: 77")),
        robots={"dialect": GOOGLE},
        option="RobotsPolicy.denied_statuses",
    ),
    *(
        denied(f"46-{status}", f"{status}", Reason.SERVER_ERROR, http(answered(b"%d X" % status)))
        for status in (500, 501, 502, 503, 504, 599)
    ),
    denied(
        "47",
        "503 with Retry-After as a date",
        Reason.SERVER_ERROR,
        http(answered(b"503 X", b"Retry-After: Fri, 31 Dec 2999 23:59:59 GMT")),
    ),
    *(
        denied(
            f"48-{n}",
            f"503 with Retry-After: {shown}",
            Reason.SERVER_ERROR,
            http(answered(b"503 X", b"Retry-After: " + value)),
        )
        for n, (shown, value) in enumerate(
            [
                ("soon", b"soon"),
                ("-5", b"-5"),
                ("forty nines", b"9" * 40),
                ("octets that are no text", b"\xff\xfe"),
                ("1e999", b"1e999"),
            ],
            1,
        )
    ),
    *(
        denied(
            f"49-{status}",
            f"{status}",
            Reason.ODD_STATUS,
            http(answered(status.encode() + b" X")),
            option="RobotsPolicy.allowed_statuses",
        )
        for status in ("600", "999", "000")
    ),
    allowed(
        "49-allowed",
        "999 where the policy says that it means no file",
        http(answered(b"999 X")),
        Reason.ODD_STATUS,
        robots={"allowed_statuses": frozenset({999})},
        option="RobotsPolicy.allowed_statuses",
    ),
]

FRAMING = [
    denied("50a", "a status that is no number", Reason.PROTOCOL_ERROR, http(b"HTTP/1.1 abc OK\r\n\r\n")),
    denied("50b", "HTTP/0.9: the body alone", Reason.PROTOCOL_ERROR, http(RULES)),
    denied("50c", "an HTTP/2 preface", Reason.PROTOCOL_ERROR, http(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    denied("50d", "an SSH banner", Reason.PROTOCOL_ERROR, http(b"SSH-2.0-OpenSSH_9.2\r\n")),
    denied("50e", "an ICY status line", Reason.PROTOCOL_ERROR, http(b"ICY 200 OK\r\n\r\n" + RULES)),
    parsed(
        "51a", "HTTP/1.0, the end of the connection ends the body", http(b"HTTP/1.0 200 OK\r\n\r\n" + RULES)
    ),
    parsed("51b", "no reason phrase", http(ok(status=b"200"))),
    denied(
        "52",
        "Content-Length too large",
        Reason.BODY_CUT_SHORT,
        http(OK + b"Content-Length: 100\r\n\r\n" + RULES),
    ),
    denied(
        "53",
        "Content-Length too small",
        Reason.BODY_CUT_SHORT,
        http(OK + b"Content-Length: 14\r\n\r\n" + RULES),
    ),
    denied(
        "54",
        "Content-Length below zero",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: -1\r\n\r\n" + RULES),
    ),
    denied(
        "55",
        "Content-Length of forty nines",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + RULES),
    ),
    denied(
        "56",
        "Content-Length twice",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: 33\r\nContent-Length: 14\r\n\r\n" + RULES),
    ),
    denied(
        "57",
        "Content-Length and chunks",
        Reason.PROTOCOL_ERROR,
        http(
            OK + b"Content-Length: 33\r\nTransfer-Encoding: chunked\r\n\r\n21\r\n" + RULES + b"\r\n0\r\n\r\n"
        ),
    ),
    denied(
        "58",
        "a chunk size that is no number",
        Reason.PROTOCOL_ERROR,
        http(chunked(b"ZZ\r\n" + RULES + b"\r\n0\r\n\r\n")),
    ),
    denied(
        "59",
        "a chunk size that overflows",
        Reason.PROTOCOL_ERROR,
        http(chunked(b"F" * 20 + b"\r\n" + RULES + b"\r\n0\r\n\r\n")),
        pure=(DENY, Reason.BODY_CUT_SHORT),
    ),
    denied("60", "no last chunk", Reason.BODY_CUT_SHORT, http(chunked(b"21\r\n" + RULES + b"\r\n"))),
    parsed(
        "61",
        "a chunk extension of 200 KB",
        http(chunked(b"21;" + b"x" * 200_000 + b"\r\n" + RULES + b"\r\n0\r\n\r\n")),
        pure=(DENY, Reason.HEAD_TOO_LARGE),
        heavy=True,
    ),
    denied(
        "62",
        "50,000 trailers",
        Reason.HEAD_TOO_LARGE,
        http(many(b"X-Y: z\r\n", 50_000, before=chunked(b"21\r\n" + RULES + b"\r\n0\r\n"), after=b"\r\n")),
        heavy=True,
    ),
    denied(
        "63",
        "an unknown Transfer-Encoding",
        Reason.TRANSFER_CODING_UNKNOWN,
        http(OK + b"Transfer-Encoding: rot13\r\nConnection: close\r\n\r\n" + RULES),
        option="FetchPolicy.transfer_codings",
    ),
    parsed(
        "63b",
        "a Transfer-Encoding that the policy names",
        http(
            OK + b"Transfer-Encoding: identity\r\nConnection: close\r\n\r\n" + RULES,
            fetching={"transfer_codings": frozenset({"identity"})},
        ),
        option="FetchPolicy.transfer_codings",
    ),
]

CODINGS = [
    denied(
        "64a",
        "an unknown Content-Encoding",
        Reason.CODING_UNKNOWN,
        http(ok(RULES, b"Content-Encoding: rot13")),
    ),
    denied(
        "64b",
        "gzip within gzip",
        Reason.CODING_UNKNOWN,
        http(ok(gzip.compress(PACKED), b"Content-Encoding: gzip, gzip")),
    ),
    denied("65a", "called gzip, and is not", Reason.BODY_CORRUPT, http(ok(RULES, GZIP))),
    denied("65b", "gzip cut short", Reason.BODY_CUT_SHORT, http(ok(PACKED[:-9], GZIP))),
    denied(
        "65c",
        "gzip with a wrong checksum",
        Reason.BODY_CORRUPT,
        http(ok(PACKED[:-8] + bytes(4) + PACKED[-4:], GZIP)),
    ),
    parsed(
        "66a",
        "junk behind the gzip stream: what ended cleanly counts",
        http(ok(PACKED + b"junk", GZIP)),
        option="FetchPolicy.junk_after_gzip",
    ),
    denied(
        "66b",
        "junk behind the gzip stream where the policy does not allow it",
        Reason.BODY_CORRUPT,
        http(ok(PACKED + b"junk", GZIP), fetching={"junk_after_gzip": False}),
    ),
    parsed("67", "a gzip bomb of 512 MiB: the first 512,000 decoded octets count", http(bomb()), heavy=True),
    denied(
        "68",
        "a brotli body, which was not asked for",
        Reason.CODING_UNKNOWN,
        http(endless(OK + b"Content-Encoding: br\r\n\r\n", bytes(65_536))),
        heavy=True,
    ),
    denied(
        "69",
        "a zstd body, which was not asked for",
        Reason.CODING_UNKNOWN,
        http(endless(OK + b"Content-Encoding: zstd\r\n\r\n", bytes(65_536))),
        heavy=True,
    ),
    denied(
        "70",
        "20,000 gzip members",
        Reason.BODY_CORRUPT,
        http(many(gzip.compress(b"#\n"), 20_000, before=OK + GZIP + b"\r\n\r\n")),
        heavy=True,
    ),
]

HEADS = [
    denied("71a", "a header of 100 KB", Reason.HEAD_TOO_LARGE, http(ok(RULES, b"X: " + b"y" * 100_000))),
    denied(
        "71b",
        "a header without end",
        Reason.HEAD_TOO_LARGE,
        http(endless(OK + b"X: ", b"y" * 10_000)),
        heavy=True,
    ),
    denied("72a", "5,000 headers", Reason.HEAD_TOO_LARGE, http(ok(RULES, *[b"X: y"] * 5_000))),
    denied(
        "72b",
        "headers without end",
        Reason.HEAD_TOO_LARGE,
        http(endless(OK, b"X: y\r\n" * 1_000)),
        heavy=True,
    ),
    parsed("73a", "a folded header", http(ok(RULES, b"X: y\r\n z"))),
    parsed("73b", "header lines that end in LF", http(ok().replace(b"\r\n", b"\n"))),
    denied("74a", "NUL in a header", Reason.PROTOCOL_ERROR, http(ok(RULES, b"X: y\0z"))),
    denied("74b", "a header without colon", Reason.PROTOCOL_ERROR, http(ok(RULES, b"XYZ"))),
    denied("74c", "a space in a header's name", Reason.PROTOCOL_ERROR, http(ok(RULES, b"X Y: z"))),
    denied(
        "75",
        "a status line of 100 KB",
        Reason.HEAD_TOO_LARGE,
        http(b"HTTP/1.1 200 " + b"O" * 100_000 + b"\r\n\r\n" + RULES),
    ),
    parsed(
        "76", "100 cookies: none is kept", http(ok(RULES, *(b"Set-Cookie: c%d=1" % n for n in range(100))))
    ),
    parsed(
        "77a",
        "20,000 responses 103 before the file",
        http(many(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20_000, before=b"", after=ok())),
        heavy=True,
    ),
    denied(
        "77b",
        "responses 100 without end",
        Reason.TIMEOUT,
        http(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100)),
        option="FetchPolicy.timeout",
        heavy=True,
    ),
    denied(
        "78",
        "101 Switching Protocols",
        Reason.ODD_STATUS,
        http(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
    ),
]

CONNECTIONS = [
    denied(
        "79", "a connection, and then silence", Reason.TIMEOUT, http(silence), option="FetchPolicy.timeout"
    ),
    denied(
        "80",
        "headers octet by octet",
        Reason.TIMEOUT,
        http(slowly(ok(RULES, b"X: " + b"y" * 500))),
        option="FetchPolicy.timeout",
    ),
    denied(
        "81",
        "a body octet by octet",
        Reason.TIMEOUT,
        http(slowly(ok(RULES * 10))),
        option="FetchPolicy.timeout",
    ),
    denied("82", "closed before the reply", Reason.CONNECTION_LOST, http(b"")),
    denied("83", "closed within a header", Reason.CONNECTION_LOST, http(OK + b"Content-Le")),
    denied("84", "reset at once", Reason.CONNECTION_LOST, http(reset_after(b""))),
    denied(
        "85",
        "reset within the body",
        Reason.BODY_CUT_SHORT,
        http(reset_after(OK + b"Content-Length: 100\r\n\r\n" + RULES)),
    ),
    denied(
        "85b",
        "reset within a body that the end of the connection ends",
        Reason.BODY_CUT_SHORT,
        http(reset_after(OK + b"\r\n" + RULES)),
    ),
    parsed("86", "a second response behind the first", http(ok() + ok(b"User-agent: *\nAllow: /\n"))),
    parsed(
        "87",
        "closed after each response without saying so: every hop has its own connection",
        http(moved(b"/there"), ok()),
        hits=2,
    ),
]

NAMES = [
    denied("88a", "a connection that is refused", Reason.CONNECTION_REFUSED, nobody, hits=0),
    denied("88b", "a host that no way leads to", Reason.HOST_UNREACHABLE, nowhere, hits=0),
    denied("89", "NXDOMAIN", Reason.DNS_NXDOMAIN, named({}), hits=0, option="FetchPolicy.nameservers"),
    denied(
        "90",
        "SERVFAIL",
        Reason.DNS_SERVFAIL,
        named({"site.test": dns.SERVFAIL}),
        hits=0,
        option="FetchPolicy.nameservers",
    ),
    denied(
        "91",
        "a nameserver that does not answer",
        Reason.DNS_TIMEOUT,
        named({"site.test": dns.SILENCE}),
        hits=0,
        option="FetchPolicy.nameservers",
    ),
    denied(
        "92a",
        "NODATA: the name has no address",
        Reason.DNS_NODATA,
        named({"site.test": ()}),
        hits=0,
        option="FetchPolicy.nameservers",
    ),
    denied(
        "92b",
        "REFUSED",
        Reason.DNS_REFUSED,
        named({"site.test": dns.REFUSED}),
        hits=0,
        option="FetchPolicy.nameservers",
    ),
    denied(
        "92c",
        "an answer that cannot be read",
        Reason.DNS_BAD_ANSWER,
        named({"site.test": dns.GARBAGE}),
        hits=0,
        option="FetchPolicy.nameservers",
    ),
    parsed("93a", "an IPv4 address only", named({"site.test": ("127.0.0.1",)})),
    parsed("93b", "an IPv6 address only", named({"site.test": ("::1",)}, host="::1")),
    parsed(
        "93c",
        "an IPv6 address where nothing listens, and an IPv4 address",
        named({"site.test": ("::1", "127.0.0.1")}),
    ),
    parsed(
        "93d",
        "SERVFAIL for the IPv6 address only",
        named({("site.test", dns.A): ("127.0.0.1",), ("site.test", dns.AAAA): dns.SERVFAIL}),
    ),
    denied(
        "94",
        "a name that led to a public address when somebody looked, and leads to a private one now",
        Reason.ADDRESS_REFUSED,
        named({"site.test": ("10.0.0.1",)}),
        hits=0,
    ),
]

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
    denied(
        "98",
        "a certificate that nobody vouches for",
        Reason.TLS_UNTRUSTED,
        tls(trusted=False),
        hits=0,
        option="FetchPolicy.ca_file",
    ),
    denied(
        "99",
        "a certificate for *.test, of all names",
        Reason.TLS_WRONG_HOST,
        tls(identity="*.test", name="site.test"),
        hits=0,
    ),
    parsed("99b", "a certificate that is right", tls(identity="site.test", name="site.test")),
    denied(
        "100",
        "a peer that refuses each version of TLS that we speak",
        Reason.TLS_PROTOCOL,
        http(b"\x15\x03\x01\x00\x02\x02\x46", scheme="https", hears=b""),
    ),
    denied(
        "100b", "plain HTTP where TLS is expected", Reason.TLS_PROTOCOL, http(ok(), scheme="https", hears=b"")
    ),
    denied(
        "101",
        "a peer that never answers the handshake",
        Reason.TIMEOUT,
        http(silence, scheme="https", hears=b""),
        option="FetchPolicy.timeout",
    ),
]

spoken = partial(http, scheme="ftp", hears=b"")


async def _unconfirmed(_: Any, writer: Any) -> None:
    writer.close()


FTP = [
    parsed("102", "FTP: the file", spoken(ftp())),
    allowed("102a", "FTP: 550", spoken(ftp({"RETR": b"550 no such file\r\n"}))),
    denied("102b", "FTP: 421 as greeting", Reason.FTP_BUSY, spoken(ftp({"": b"421 too many users\r\n"}))),
    denied(
        "102c",
        "FTP: 530 to the login",
        Reason.FTP_LOGIN_REFUSED,
        spoken(ftp({"USER": b"530 no\r\n"})),
        option="RobotsPolicy.allowed_statuses",
    ),
    denied(
        "102d",
        "FTP: a greeting without end",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"": endless(b"", b"220-and another thing\r\n" * 50)})),
        heavy=True,
    ),
    denied(
        "102e",
        "FTP: a line without end",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"": endless(b"220 ", b"x" * 5_000)})),
        heavy=True,
    ),
    denied(
        "102f",
        "FTP: a reply without end to a command",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"PASS": endless(b"230-", b"welcome\r\n" * 50)})),
        heavy=True,
    ),
    denied(
        "102g",
        "FTP: silence instead of a greeting",
        Reason.TIMEOUT,
        spoken(silence),
        option="FetchPolicy.timeout",
    ),
    denied(
        "102h",
        "FTP: data octet by octet",
        Reason.TIMEOUT,
        spoken(ftp(data=slowly(RULES * 10))),
        option="FetchPolicy.timeout",
    ),
    denied("102i", "FTP: data reset on the way", Reason.BODY_CUT_SHORT, spoken(ftp(data=reset_after(RULES)))),
    denied(
        "102j", "FTP: 426 after the data", Reason.BODY_CUT_SHORT, spoken(ftp({"END": b"426 broken off\r\n"}))
    ),
    denied(
        "102k",
        "FTP: closed before it says that the data were all",
        Reason.BODY_CUT_SHORT,
        spoken(ftp({"END": _unconfirmed})),
    ),
    denied(
        "102l",
        "FTP: another host for the data, in answer to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken(ftp({"EPSV": b"227 (10,0,0,1,4,1)\r\n"})),
    ),
    denied(
        "102m",
        "FTP: another host for the data, within the reply to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken(ftp({"EPSV": b"229 (|1|10.0.0.1|1025|)\r\n"})),
    ),
    denied(
        "102n",
        "FTP: no extended passive mode",
        Reason.FTP_NO_PASSIVE,
        spoken(ftp({"EPSV": b"502 what?\r\n"})),
    ),
    denied(
        "102o", "FTP: port 0 for the data", Reason.PROTOCOL_ERROR, spoken(ftp({"EPSV": b"229 (|||0|)\r\n"}))
    ),
    denied("102p", "FTP: no reply, but HTTP", Reason.PROTOCOL_ERROR, spoken(ok())),
    denied("102q", "FTP: closed within a reply", Reason.CONNECTION_LOST, spoken(b"220 he")),
    denied("102r", "FTP: 550 to the type", Reason.SERVER_ERROR, spoken(ftp({"TYPE": b"550 no\r\n"}))),
    parsed(
        "102s",
        "FTP: a file without end: the first 512,000 octets count",
        spoken(ftp(data=endless(b"", LONG * 500))),
        heavy=True,
    ),
]

MATRIX = [
    *BODIES,
    *STATUSES,
    *REDIRECTS,
    *REFUSALS,
    *FRAMING,
    *CODINGS,
    *HEADS,
    *CONNECTIONS,
    *NAMES,
    *CERTIFICATES,
    *FTP,
]
