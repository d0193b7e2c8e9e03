"""Registrable domains, by the public suffix list that the package publicsuffixlist brings along; no network."""

from collections.abc import Callable
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from polite.url.ip import is_address

# Hosts whose domain is remembered: looking one up costs as much as a whole permit.
_REMEMBERED = 100_000


def registrable_domains() -> Callable[[str], str | None]:
    """A function from hosts, as an Origin has them, to the domain that somebody registered; None for an address.

    A host that is a public suffix itself stands for itself.
    """
    suffixes = PublicSuffixList()

    @lru_cache(_REMEMBERED)
    def domain_of(host: str) -> str | None:
        if is_address(host):
            return None
        name = host.rstrip(".")
        return suffixes.privatesuffix(name) or name

    return domain_of
