"""Sitemaps: which URLs a site names, read without I/O.

Theory of operation. `SitemapParser` takes the octets of one file in chunks of any size and returns what it found so far. It
removes gzip, tells XML from text by the first character, and reads lines (`parser`) or XML with expat (`xml_reader`). The content
decides, never the Content-Type or the file's name, which servers often get wrong.

A file is hostile until it is read: each limit of `SitemapPolicy` ends it, entity declarations are refused, and so is a token
that expat cannot finish within 256 KiB, since expat before 2.6 reads it again with each chunk. A file that ends early, for any
reason, keeps what came before: `SitemapParser.problem` has the reason, which is never an exception.

`Gate.sitemaps` fetches the files of a site, each in its turn, and passes them through a parser.
"""

from polite.sitemaps.entry import (
    Alternate,
    ChangeFrequency,
    SitemapEntry,
    SitemapFile,
    SitemapKind,
    SitemapLink,
    SitemapPolicy,
)
from polite.sitemaps.parser import SitemapParser

__all__ = [
    "Alternate", "ChangeFrequency", "SitemapEntry", "SitemapFile", "SitemapKind", "SitemapLink",
    "SitemapParser", "SitemapPolicy",
]  # fmt: skip
