"""Remembers validators of pages in memory."""

from collections import OrderedDict

from polite.options import integer
from polite.origin import Target
from polite.recrawl.validators import Validators

# What an entry takes besides its texts (octets, measured): its place, the value, three strings.
_ENTRY = 400


class MemoryValidators:
    """A ValidatorStore in memory. It forgets the page that was reported least recently first.

    Several gates may share one: it keeps its content when it is closed.

    >>> MemoryValidators(max_urls=1_000).memory_used
    0

    Args:
        max_urls: The most pages.
        max_memory: The most memory that they take (octets, approximate).

    Raises:
        InvalidOption: A limit has the wrong type or value.
    """

    def __init__(self, max_urls: int = 100_000, *, max_memory: int = 64 * 1024 * 1024) -> None:
        integer("MemoryValidators: max_urls", max_urls, least=1, most=1_000_000_000)
        integer("MemoryValidators: max_memory", max_memory, least=1 << 16, most=1 << 44)
        self._max_urls = max_urls
        self._max_memory = max_memory
        self._memory = 0
        self._known: OrderedDict[str, Validators] = OrderedDict()

    @property
    def memory_used(self) -> int:
        """The memory that the pages take (octets, approximate)."""
        return self._memory

    async def validators(self, target: Target) -> Validators:
        """Return what is known of the page."""
        return self._known.get(target.url, Validators())

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators, or forget the page if there are none."""
        url = target.url
        before = self._known.pop(url, None)
        if before is not None:
            self._memory -= _octets(url, before)
        if not validators:
            return
        self._known[url] = validators
        self._memory += _octets(url, validators)
        while len(self._known) > self._max_urls or self._memory > self._max_memory:
            self._memory -= _octets(*self._known.popitem(last=False))

    async def close(self) -> None:
        """Do nothing: the validators stay for the next gate."""


def _octets(url: str, validators: Validators) -> int:
    return _ENTRY + len(url) + len(validators.etag or "") + len(validators.last_modified or "")
