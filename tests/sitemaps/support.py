"""What tests of sitemaps share: a file read in chunks, and files made of entries."""

from polite.sitemaps import SitemapParser, SitemapPolicy

FILE = "https://example.com/sitemap.xml"
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(data, *, size=65_536, url=FILE, cut_short=False, **limits):
    """Return the parser of a whole file, which was read in chunks of `size` octets, and what it found."""
    octets = data.encode() if isinstance(data, str) else data
    parser, found = SitemapParser(url, SitemapPolicy(**limits)), []
    for start in range(0, len(octets), size):
        for piece in parser.feed(octets[start : start + size]):
            found += piece
    return parser, found + parser.close(cut_short=cut_short)


def urls(data: bytes | str, **options: int) -> list[str]:
    parser, found = read(data, **options)
    assert parser.problem is None
    return [each.url for each in found]


def urlset(*entries: str) -> str:
    return (
        f"{XML}<urlset {NAMESPACE}>\n"
        + "\n".join(f"<url>{entry}</url>" for entry in entries)
        + "\n</urlset>\n"
    )


def pages(count: int, start: int = 0) -> str:
    return urlset(*(f"<loc>https://example.com/{number}</loc>" for number in range(start, start + count)))


def index(*locations: str) -> str:
    return (
        f"{XML}<sitemapindex {NAMESPACE}>"
        + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in locations)
        + "</sitemapindex>"
    )
