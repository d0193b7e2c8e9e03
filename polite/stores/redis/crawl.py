"""A crawl's name and terms: what all its processes must agree on, in one hash of the server."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from polite.errors import InvalidOption, StoreFailed
from polite.stores.redis.link import RedisLink, Script
from polite.stores.redis.server import reached

SCHEMA = 1
DEFAULT_CRAWL = "default"
# A bound for what a damaged hash could name.
_MAX_PARTITIONS = 4_096
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SCRIPT = Script("crawl")


def crawl_name(name: object) -> str:
    """Return a crawl's name, which becomes part of each key. Raises InvalidOption."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise InvalidOption(
            f"must be a name of 1 to 100 letters, digits, dots, hyphens and underscores, got {name!r}",
            option="crawl",
        )
    return name


def crawl_key(crawl: str) -> str:
    """Return the key of the crawl's terms."""
    return f"polite:{{{crawl}}}:crawl"


def partition_prefix(crawl: str, partition: int) -> str:
    """Return what all keys of a partition begin with; the part in braces gives them one slot of a cluster."""
    return f"polite:{{{crawl}:{partition}}}:"


@dataclass(frozen=True, slots=True)
class Terms:
    """What all processes of a crawl must agree on, and what is fixed when it begins.

    Attributes:
        partitions: How many parts it has, fixed by the process that comes first.
        home: What a home is.
        lease_s: A session's lease.
        order: Which tasks of an origin are loaded first; None if no frontier has come yet.
    """

    partitions: int
    home: Literal["host", "domain", "address", "custom"] = "host"
    lease_s: float = 15.0
    order: str | None = None


async def joined(link: RedisLink, crawl: str, terms: Terms) -> Terms:
    """Begin a crawl with these terms, or join one that has the same; return the crawl's own.

    Only `partitions` may differ: the crawl's count holds, since a cluster may have grown since.

    Raises:
        InvalidOption: The crawl has another home, lease or order. The message names both.
        StoreFailed: The server is not reached, or the crawl is a newer version's or another program's.
    """
    given = dict(_fields(terms))
    flat = [text for pair in given.items() for text in pair]
    reply = await reached(link, lambda: link.run(_SCRIPT, [crawl_key(crawl)], SCHEMA, *flat))
    words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in reply]
    found = dict(zip(words[::2], words[1::2], strict=True))
    if "schema" not in found:
        raise StoreFailed(
            f"{link.name}: {crawl_key(crawl)} was not written by polite: choose another crawl, or another database"
        )
    if found["schema"] != str(SCHEMA):
        raise StoreFailed(
            f"{link.name}: crawl {crawl!r} was begun by a version of polite with schema {found['schema'][:20]}, "
            f"and this version has {SCHEMA}: use one version for all processes, or another crawl"
        )
    for field, name in (("home", "home"), ("lease", "lease"), ("order", "scheduler's order")):
        if field in given and found[field] != given[field]:
            raise InvalidOption(
                f"crawl {crawl!r} at {link.name} was begun with {name} {found[field]!r}, and this process has "
                f"{given[field]!r}: use the same in all processes, or another crawl"
            )
    return Terms(_partitions(link, crawl, found["partitions"]), terms.home, terms.lease_s, found.get("order"))


def _fields(terms: Terms) -> Iterator[tuple[str, str]]:
    yield "partitions", str(terms.partitions)
    yield "home", terms.home
    yield "lease", f"{terms.lease_s:g}"
    if terms.order is not None:
        yield "order", terms.order


def _partitions(link: RedisLink, crawl: str, text: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
    if not 1 <= number <= _MAX_PARTITIONS:
        raise StoreFailed(
            f"{link.name}: {crawl_key(crawl)} is damaged: {text[:20]!r} is no number of partitions from 1 to {_MAX_PARTITIONS}"
        )
    return number
