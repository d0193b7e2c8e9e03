"""Registrable domains by the public suffix list, which the package publicsuffixlist contains; no network."""

from collections.abc import Callable
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from polite.url.ip import is_address

# Hosts whose domain is remembered: a lookup costs as much as a whole permit.
_REMEMBERED = 100_000


def registrable_domains() -> Callable[[str], str | None]:
    """Return a function from hosts, as an Origin has them, to their registrable domain; None for an address.

    A host that is a public suffix is its own domain.

    >>> domain_of = registrable_domains()
    >>> domain_of("www.example.co.uk"), domain_of("192.0.2.1")
    ('example.co.uk', None)
    """
    suffixes = PublicSuffixList()

    @lru_cache(_REMEMBERED)
    def domain_of(host: str) -> str | None:
        if is_address(host):
            return None
        name = host.rstrip(".")
        return suffixes.privatesuffix(name) or name

    return domain_of
