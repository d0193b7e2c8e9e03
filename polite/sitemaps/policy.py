"""SitemapPolicy: limits on sitemaps, and which of their URLs count."""

from dataclasses import dataclass

from polite.options import boolean, integer, number

# What the protocol permits one file to have (https://www.sitemaps.org/protocol.html): 50 MiB decoded, 50,000 entries.
BYTES = 50 * 1024 * 1024
ENTRIES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapPolicy:
    """Limits on sitemaps. A file that exceeds one keeps what came before.

        >>> SitemapPolicy(max_files=10).max_entries
        50000

    Attributes:
        max_bytes: octets of a file, before and after it is decompressed.
        max_entries: entries or links of a file.
        max_files: files of a site, those included that could not be read.
        max_depth: how many indexes may lead from robots.txt to a file. The protocol has one. With 0, no index is followed.
        max_redirects: redirects of a file that are followed, each in its turn.
        timeout: seconds on the network for a file, redirects included. Waiting for a turn does not count.
        other_hosts: whether URLs of hosts other than the site's count. The protocol forbids them. `www.` makes no other host.

    Raises:
        InvalidOption: if a value is outside of its limits.
    """

    max_bytes: int = BYTES
    max_entries: int = ENTRIES
    max_files: int = 1_000
    max_depth: int = 2
    max_redirects: int = 5
    timeout: float = 60.0
    other_hosts: bool = False

    def __post_init__(self) -> None:
        integer("SitemapPolicy: max_bytes", self.max_bytes, least=1, most=1 << 32)
        integer("SitemapPolicy: max_entries", self.max_entries, least=1, most=100_000_000)
        integer("SitemapPolicy: max_files", self.max_files, least=1, most=50_000)
        integer("SitemapPolicy: max_depth", self.max_depth, least=0, most=10)
        integer("SitemapPolicy: max_redirects", self.max_redirects, least=0, most=20)
        number("SitemapPolicy: timeout", self.timeout, least=0.001, most=86_400)
        boolean("SitemapPolicy: other_hosts", self.other_hosts)
