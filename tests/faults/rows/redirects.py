"""Where a redirect may lead: rows of the fault matrix."""

from functools import partial
from typing import Any

from polite.robots.reason import Reason
from tests.faults import names as dns
from tests.faults.ftp import ftp
from tests.faults.row import Row, allowed, denied, followed, parsed, stopped
from tests.faults.stage import RULES, Scene, http, led_on, moved, named, ok, tls


def downgraded(**policy: Any) -> Scene:
    return led_on(lambda there: tls(moved(b"http://" + there.encode() + b"/there"), **policy), http(ok()))


def guarded(number: str, fault: str, location: bytes, inner: str = "127.0.0.9") -> Row:
    """A redirect that is stopped by its address; `inner` is that of inner.test."""
    names = {("inner.test", dns.A): (inner,)}
    return stopped(number, fault, Reason.ADDRESS_REFUSED, location, names=names)


REDIRECTS = [
    followed("20", "Location: a relative path", b"there.txt?a=b", b"/there.txt?a=b"),
    followed("21", "Location: //host/path", b"//{here}/there"),
    followed("22", "Location with a fragment: it is dropped", b"/there#part"),
    followed("23", "Location with credentials: they are dropped", b"http://user:secret@{here}/there"),
    followed("24", "Location with dot segments", b"/a/../b/./there", b"/b/there"),
    followed("25", "Location: \\\\host\\path, as browsers read it", b"\\\\{here}\\there"),
    followed(
        "26",
        "Location with an internationalised host",
        "http://bücher.test:{port}/there".encode(),
        scene=partial(http, names={("xn--bcher-kva.test", dns.A): ("127.0.0.1",)}),
    ),
    followed("27", "Location with a path in raw UTF-8", "/bücher".encode(), b"/b%C3%BCcher"),
    followed(
        "28",
        "Location with octets that are not UTF-8: percent-encoded, as they are",
        b"/\xff\xfe",
        b"/%FF%FE",
    ),
    stopped("28b", "Location with such octets in its host", Reason.REDIRECT_INVALID, b"http://\xff\xfe/"),
    stopped("29", "Location: file:///etc/passwd", Reason.REDIRECT_UNSAFE, b"file:///etc/passwd"),
    stopped("30", "Location: javascript:", Reason.REDIRECT_UNSAFE, b"javascript:alert(1)"),
    stopped("31", "Location: data:", Reason.REDIRECT_UNSAFE, b"data:text/plain,Allow:/"),
    parsed(
        "32",
        "Location: ftp://, which polite supports",
        led_on(
            lambda there: http(moved(b"ftp://" + there.encode() + b"/there")),
            http(ftp(), scheme="ftp", hears=b""),
        ),
        hits=2,
        option="open_gate(transports=...)",
    ),
    stopped("32b", "Location to a scheme without a transport", Reason.REDIRECT_SCHEME, b"gopher://{here}/0"),
    guarded("33a", "Location to a private address", b"http://10.0.0.1/robots.txt"),
    guarded(
        "33b", "Location to a name that leads to a private address", b"http://inner.test/", "192.168.0.1"
    ),
    guarded("34a", "Location to a cloud's metadata address", b"http://169.254.169.254/latest/meta-data/"),
    guarded("34b", "Location to a name of the metadata address", b"http://inner.test/", "169.254.169.254"),
    stopped("35", "Location with a port out of range", Reason.REDIRECT_INVALID, b"http://{here}9999/"),
    followed(
        "36",
        "%0d%0a in the Location: it stays encoded",
        b"/there%0d%0aX-Evil:%201",
        b"/there%0d%0aX-Evil:%201",
    ),
    parsed(
        "37",
        "five redirects, one of them to another host: the rules apply to the first origin",
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
        downgraded(),
        hits=2,
        option="FetchPolicy.allow_downgrade",
    ),
    denied(
        "39b",
        "a redirect from https to http if the policy does not allow it",
        Reason.REDIRECT_DOWNGRADE,
        downgraded(allow_downgrade=False),
    ),
    followed(
        "40a",
        "two Location fields: the first counts",
        b"/there\r\nLocation: /elsewhere",
        option="FetchPolicy.first_location",
    ),
    denied(
        "40b",
        "two Location fields if the policy does not let the first count",
        Reason.REDIRECT_AMBIGUOUS,
        http(moved(b"/there", b"Location: /elsewhere"), fetching={"first_location": False}),
    ),
    parsed(
        "41",
        "Refresh, meta and script redirects: the page itself is read",
        ok(
            RULES + b"<meta http-equiv=refresh content='0; url=/there'><script>location='/there'</script>\n",
            b"Refresh: 0; url=/there",
        ),
    ),
]
