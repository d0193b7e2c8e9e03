"""refusal: whether a response is in truth a refusal, whatever its status: a challenge, a block, a login or a payment demand."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from polite.errors import InvalidOption
from polite.http.challenge import challenges
from polite.http.header_fields import Headers, selected, text_of

# Octets, or characters, of a body that are read. The pages that services send instead of a page are shorter, but for Cloudflare's,
# whose marks come early.
_BODY_LIMIT = 16_384
_MOST_STATUS = 999
_UNAUTHORIZED = 401
# Characters of a field that are told.
_TOLD = 100


class RefusalKind(StrEnum):
    """What a response is instead of the page.

    >>> f"it is a {RefusalKind.CHALLENGE}"
    'it is a challenge'

    Attributes:
        NONE: nothing says that it is no page. It may still be an error: see its status.
        CHALLENGE: a captcha, or a proof that JavaScript must compute.
        BLOCK: this client gets no page here.
        LOGIN: credentials are needed.
        PAYMENT: a payment or a licence is needed.
    """

    NONE = "none"
    CHALLENGE = "challenge"
    BLOCK = "block"
    LOGIN = "login"
    PAYMENT = "payment"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Whether a response is a refusal, and by what mark. It is false if it is none.

        >>> from polite import refusal
        >>> found = refusal(403, {"cf-mitigated": "challenge"})
        >>> bool(found), str(found)
        (True, 'challenge by Cloudflare (cf-mitigated: challenge)')

    Attributes:
        kind: what the response is instead of the page.
        by: the service or the protocol that refuses, such as "Cloudflare"; None if that is not known.
        because: what of the response says so; "" if nothing does.
    """

    kind: RefusalKind = RefusalKind.NONE
    by: str | None = None
    because: str = ""

    def __bool__(self) -> bool:
        return self.kind is not RefusalKind.NONE

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"{self.kind}{by} ({self.because})" if self else str(self.kind)


# Names in lower case, with their values.
_Fields = list[tuple[str, str]]
_NONE = Refusal()
_CHALLENGE, _BLOCK, _LOGIN, _PAYMENT = list(RefusalKind)[1:]


class _Mark(NamedTuple):
    """What a response has if a service refuses with it: all that is named here.

    Attributes:
        statuses: one of these; any status if empty.
        fields: names and values of header fields; "" for any value.
        location: the end of the host and the start of the path of the Location; the whole path if it ends with "/".
        title: the text of the first title element; if it ends with "!" or "|", what that starts with.
        body: texts in the body.
        whole: the whole page is within the limit. Where pages of sites could have the marks, too, this excludes nearly all.
        media: a part of the Content-Type, for marks with a title or a body.
    """

    kind: RefusalKind
    by: str | None
    statuses: tuple[int, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    location: str = ""
    title: str = ""
    body: tuple[str, ...] = ()
    whole: bool = False
    media: str = "html"

    @property
    def in_body(self) -> bool:
        return bool(self.title or self.body)

    def fits(self, status: int, fields: _Fields) -> bool:
        """Return whether it fits a response but for its body."""
        if self.statuses and status not in self.statuses:
            return False
        places = (value for name, value in fields if name == "location")
        if self.location and not any(map(self._leads, places)):
            return False
        return not self.fields or all(
            any(name == each and (not wanted or wanted.lower() == value.lower()) for each, value in fields)
            for name, wanted in self.fields
        )

    def _leads(self, location: str) -> bool:
        """Whether a Location leads there itself, and does not only name it, as those of an archive do."""
        place = location.partition("#")[0].partition("?")[0].lower()
        scheme, _, rest = place.partition("://")
        place = rest if rest and "/" not in scheme else place.removeprefix("//")
        (host, _, path), (domain, _, start) = place.partition("/"), self.location.partition("/")
        return host.endswith(domain) and (path == start if start.endswith("/") else path.startswith(start))

    def verdict(self, status: int, fields: _Fields) -> Refusal:
        found = dict(fields)
        parts = [
            *([f"status {status}"] if self.statuses else []),
            *(f"{name}: {wanted or _told(found[name])}" for name, wanted in self.fields),
            *([f"location: {self.location}"] if self.location else []),
            *([f"title: {self.title}"] if self.title else []),
            *(f"body: {text.strip()}" for text in self.body[:1]),
        ]
        return Refusal(self.kind, self.by, "; ".join(parts))


def _told(value: str) -> str:
    return "".join(filter(str.isprintable, value[:_TOLD]))


_UNSATISFIED, _BY_CLOUDFRONT = "ERROR: The request could not be satisfied", "Generated by cloudfront"
_DENIED, _AT_AKAMAI = "Access Denied", (("server", "AkamaiGHost"),)
_HASHES = '<script src="/_Incapsula_Resource?SWJIYLWA=5074a744e2e3d891814e9a2dace20bd4,'
_INCIDENT = ('<iframe id="main-iframe" src="/_Incapsula_Resource?', "Incapsula incident ID: ")
_DATADOME_URL = '{"url":"https://geo.captcha-delivery.com/'
_HUMAN = "HUMAN (PerimeterX)"


# No mark is what services put on pages that they let through: server, cf-ray, x-iinfo, x-amz-cf-id, cookies, a lone
# `x-datadome: protected`, scripts under /cdn-cgi/challenge-platform/, /_Incapsula_Resource with one hash, a lone _pxAppId or
# awswaf.com. Nor is a text that people write about them: what is sought in a body is markup, which a page that quotes it escapes
# or has in a textarea; or it stands with a title. Marks without a body come first.
_MARKS = (
    # developers.cloudflare.com, Detect a Challenge Page response (read November 2026): on all challenge pages, with any status.
    _Mark(_CHALLENGE, "Cloudflare", fields=(("cf-mitigated", "challenge"),)),
    # developers.cloudflare.com, Pay Per Crawl, Error codes (23 April 2026): the owner has blocked this crawler.
    _Mark(_BLOCK, "Cloudflare", (403,), (("crawler-error", "CrawlerForbidden"),)),
    # The same, Crawl pages (23 April 2026).
    _Mark(_PAYMENT, "Cloudflare", (402,), (("crawler-price", ""),)),
    # github.com/x402-foundation/x402, specs/transports-v2/http.md (2026).
    _Mark(_PAYMENT, "x402", (402,), (("payment-required", ""),)),
    # RFC 9110, 15.5.3 (June 2022), and draft-nottingham-httpbis-402-00 (30 August 2026).
    _Mark(_PAYMENT, None, (402,)),
    # AWS WAF Developer Guide, CAPTCHA and Challenge action behavior (read November 2026): with any status.
    _Mark(_CHALLENGE, "AWS WAF", fields=(("x-amzn-waf-action", "challenge"),)),
    _Mark(_CHALLENGE, "AWS WAF", fields=(("x-amzn-waf-action", "captcha"),)),
    # vgpu, pull request 228 (30 July 2026), and OmniRoute, pull request 7419 (18 July 2026).
    _Mark(_CHALLENGE, "Vercel", (403, 429), (("x-vercel-mitigated", "challenge"),)),
    _Mark(_BLOCK, "Vercel", (403,), (("x-vercel-mitigated", "deny"),)),
    # woocommerce, issue 52896 (18 November 2024): in place of each page.
    _Mark(_CHALLENGE, "SiteGround", (202,), (("sg-captcha", "challenge"),)),
    # docs.datadome.co, Protection API (24 August 2026): x-dd-b is on blocked requests, which get a 401 or 403. Heritrix, pull
    # request 760 (18 August 2026), needs both; `protected` alone is on pages, too (is-antibot, pull request 15, 30 March 2026).
    _Mark(_CHALLENGE, "DataDome", (401, 403), (("x-dd-b", ""), ("x-datadome", "protected"))),
    # Heritrix, pull request 760 (18 August 2026).
    _Mark(_CHALLENGE, "Anubis", (302, 307), location="/.within.website/"),
    # developers.cloudflare.com, Cloudflare One, Authenticate coding agents (2026): a redirect to the team's domain.
    _Mark(_LOGIN, "Cloudflare Access", (302,), location=".cloudflareaccess.com/cdn-cgi/access/login"),
    # For responses that a browser or a proxy handed on without the field: brofix, issue 289 (27 September 2023), and docs.rs,
    # parse-book-source 0.5.0 (read November 2026). Scripts of JavaScript Detections (6 July 2026) are on pages, these options not.
    _Mark(_CHALLENGE, "Cloudflare", (403, 429, 503), title="Just a moment...", body=("window._cf_chl_opt",)),
    # Heritrix, pull request 760 (18 August 2026).
    _Mark(_BLOCK, "Cloudflare", (403,), title="Attention Required!", body=('="block_headline">Sorry, you',)),
    # developers.cloudflare.com, Cloudflare 1xxx errors (23 April 2026): blocks come with a 403. 1015, which is about the rate, has
    # the same title, and a 429.
    _Mark(_BLOCK, "Cloudflare", (403,), title="Access denied |", body=("used Cloudflare to restrict",)),
    # browsertrix-crawler, issue 1124 (30 July 2026), and repost.aws, Troubleshoot 403 errors from CloudFront (read November 2026).
    # With the same title, mistakes of the site have other texts, such as "Bad request".
    _Mark(_BLOCK, "CloudFront", (403,), title=_UNSATISFIED, body=("Request blocked.", _BY_CLOUDFRONT)),
    _Mark(_BLOCK, "CloudFront", (403,), title=_UNSATISFIED, body=("from your country.", _BY_CLOUDFRONT)),
    # trawl, pull request 65 (14 August 2026), and is-antibot, pull request 66 (25 August 2026).
    _Mark(_CHALLENGE, "AWS WAF", (202, 405), body=("window.gokuProps", ".awswaf.com/"), whole=True),
    # community.akamai.com, Why is Akamai blocking me? (7 April 2016): the page has a reference number. 18 stands for a rule that
    # denied the request (simplefastwebsites.com, Akamai Reference 18, read November 2026). Server and status alone are those of a
    # site's errors, too (AynOps, issue 194, 4 September 2026).
    _Mark(_BLOCK, "Akamai", (403,), title=_DENIED, body=("Reference&#32;&#35;18&#46;",), whole=True),
    _Mark(_BLOCK, "Akamai", (403,), _AT_AKAMAI, title=_DENIED, body=("Reference #18.",), whole=True),
    # trawl, pull request 33 (19 July 2026): some 2 KB, with a 200.
    _Mark(_CHALLENGE, "Akamai", body=('<div id="sec-if-cpt-container"', "protected by"), whole=True),
    # docs.hypersolutions.co, Handling 428 status code (read November 2026).
    _Mark(_CHALLENGE, "Akamai", (428,), body=('"sec-cp-challenge"',), whole=True, media="json"),
    # is-antibot, pull request 60 (24 August 2026): two hashes, in a page that is nearly empty, with a 200. On pages, the script has
    # the second hash alone (browsertrix-crawler, issue 1135, 30 July 2026).
    _Mark(_CHALLENGE, "Imperva", body=(_HASHES,), whole=True),
    # Heritrix, pull request 760 (18 August 2026), and browsertrix-crawler, pull request 1015 (7 April 2026). It has the same page
    # for a server that it cannot reach, with a 404 or 5xx.
    _Mark(_BLOCK, "Imperva", (200, 403), body=_INCIDENT, whole=True),
    # camoufox, issue 90 (11 December 2024).
    _Mark(_CHALLENGE, "Imperva", title="Pardon Our Interruption", body=("window.onProtectionInitialized",)),
    # camoufox, issue 173 (27 February 2025), and docs.datadome.co, Protection API (24 August 2026), which has the statuses.
    _Mark(_CHALLENGE, "DataDome", (401, 403), body=("var dd={", ".captcha-delivery.com"), whole=True),
    _Mark(_CHALLENGE, "DataDome", (401, 403), body=(_DATADOME_URL,), whole=True, media="json"),
    # docs.perimeterx.com, Advanced Blocking Response (read November 2026). _pxAppId is on pages, too (is-antibot, pull request 70,
    # 26 August 2026), and so may be the element, in a script that a site wrote for it.
    _Mark(_CHALLENGE, _HUMAN, title="Access to this page has been denied", body=("window._pxAppId",)),
    _Mark(_CHALLENGE, _HUMAN, (403,), body=("window._pxAppId", '<div id="px-captcha"'), whole=True),
    _Mark(_CHALLENGE, _HUMAN, (403,), body=('"jsClientSrc"', '"blockScript"'), whole=True, media="json"),
    # Heritrix, pull request 760 (18 August 2026).
    _Mark(_CHALLENGE, "Anubis", (200,), body=('<script id="anubis_challenge"',), whole=True),
)
# Schemes of WWW-Authenticate that ask for no account: RSL 1.0 (November 2025), and Privacy Pass (RFC 9577, June 2024).
_SCHEMES = {"license": (_PAYMENT, "RSL"), "privatetoken": (_CHALLENGE, "Privacy Pass")}
_OF_MARKS = (name for mark in _MARKS for name, _ in mark.fields)
REFUSAL_FIELDS = frozenset({"content-type", "location", "memento-datetime", "www-authenticate", *_OF_MARKS})


def refusal(status: int, headers: Headers, body: bytes | str | None = None) -> Refusal:
    """Return whether a response is in truth a refusal, though its status may be 200, and by what mark.

    Never raises on content. It is for crawlers that should not store, index or parse such a response as the page, and should leave
    a site that refuses them. It is not for getting around a refusal, and polite helps with none: it solves no challenge, sends no
    credentials and pays nothing.

        >>> from polite import refusal
        >>> str(refusal(401, {"WWW-Authenticate": 'Basic realm="staff"'}))
        'login (status 401; www-authenticate: basic)'
        >>> bool(refusal(200, {"server": "cloudflare", "cf-ray": "1-FRA"}, "<title>What is a captcha?</title>"))
        False

    Precision comes before recall: without a mark that a service documents, or that was seen on refusals alone, the verdict is none.
    So it is for a mere 401 or 403, which may be a site's own error, and for a 429 or 503, which is about the rate: `Permit.report`
    takes it into account. A 401 with WWW-Authenticate is a login, and each 402 a payment demand. Login forms do not count, since
    pages have them.

    Args:
        status: of the response, from 0 to 999.
        headers: of the response: a mapping or pairs.
        body: of the response, decoded; its first 16,384 octets or characters are read. None if it is not there.

    Raises:
        InvalidOption: if the status is no status, the headers are neither a mapping nor pairs, or the body is of another type.
    """
    odd: object = status
    if isinstance(odd, bool) or not isinstance(odd, int) or not 0 <= odd <= _MOST_STATUS:
        raise InvalidOption(f"must be an integer from 0 to {_MOST_STATUS}, got {status!r}", option="status")
    odd = body
    if odd is not None and not isinstance(odd, bytes | str):
        raise InvalidOption(f"must be bytes, str or None, got {type(odd).__name__}", option="body")
    fields = [(name, text_of(value).strip(" \t")) for name, value in selected(headers, REFUSAL_FIELDS)]
    if any(name == "memento-datetime" for name, _ in fields):
        # RFC 7089, 2.1.1: an archive's copy of what another server responded once.
        return _NONE
    page: _Page | None = None
    for mark in _MARKS:
        if mark.fits(status, fields):
            if not mark.in_body:
                return mark.verdict(status, fields)
            if page is None:
                page = _Page.of(fields, body)
            if page.has(mark):
                return mark.verdict(status, fields)
    return _of_challenges(fields) if status == _UNAUTHORIZED else _NONE


class _Page(NamedTuple):
    """What is read of a body, in lower case. Marks are ASCII, so any encoding that keeps ASCII will do."""

    media: str
    text: str
    title: str
    whole: bool

    @classmethod
    def of(cls, fields: _Fields, body: bytes | str | None) -> "_Page":
        read = (body or "")[:_BODY_LIMIT]
        text = (read if isinstance(read, str) else read.decode("latin-1")).lower()
        media = next((value.lower() for name, value in fields if name == "content-type"), "")
        if not media:
            media = {"<": "html", "{": "json"}.get(text.lstrip("\ufeff\xef\xbb\xbf \t\r\n")[:1], "text")
        title = text.partition("<title")[2].partition(">")[2].partition("</title")[0]
        return cls(media, text, title.strip(), len(body or "") <= _BODY_LIMIT)

    def titled(self, title: str) -> bool:
        starts = not title or title.endswith(("!", "|"))
        return self.title.startswith(title) if starts else self.title.rstrip(".") == title.rstrip(".")

    def has(self, mark: _Mark) -> bool:
        return (
            mark.media in self.media
            and (self.whole or not mark.whole)
            and self.titled(mark.title.lower())
            and all(text.lower() in self.text for text in mark.body)
            and (bool(mark.title) or "<textarea" not in self.text)
        )


def _of_challenges(fields: _Fields) -> Refusal:
    """Return what a 401 asks for, by the challenges that RFC 9110, 11.6.1, has it carry."""
    values = [value for name, value in fields if name == "www-authenticate"]
    schemes = list(dict.fromkeys(each.scheme for value in values for each in challenges(value)))
    if not schemes:
        return _NONE
    kind, by = next((_SCHEMES[each] for each in schemes if each in _SCHEMES), (_LOGIN, None))
    return Refusal(kind, by, f"status 401; www-authenticate: {', '.join(schemes)[:_TOLD]}")
