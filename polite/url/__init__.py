"""URLs in canonical form: WHATWG URL's basic URL parser, for URLs that name a host.

Theory of operation. `parse.parse_url` splits a URL and hands each part to its reader: `host` (names through `idn`, UTS 46 on
idna's tables, and Punycode, RFC 3492; addresses) and `percent` (one encoder for each percent-encode set). A reader raises
`InvalidPart` with a position in its part; `parse_url` turns it into an `InvalidURL` with the position in the whole URL.

Most URLs of a crawl are canonical already. `polite.origin` recognises these with two regular expressions, and parses the others.
Both ways give the same result; `tests/url/test_parse.py` compares them. Every step is linear and bounded.
"""
