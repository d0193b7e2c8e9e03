"""Puts the entries of sitemaps into a frontier."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from polite.gate.sitemaps import Sitemaps
from polite.sitemaps.entry import SitemapEntry, SitemapFile
from polite.task import Admission

_AT_A_TIME = 500
# What the protocol says of a page without one.
_USUAL_PRIORITY = 0.5


@dataclass(frozen=True, slots=True)
class PutSitemaps:
    """The result of `Frontier.put_sitemaps`.

    Attributes:
        admissions: How many entries had each admission.
        files: What became of each file.
    """

    admissions: Mapping[Admission, int]
    files: tuple[SitemapFile, ...]

    @property
    def waiting(self) -> int:
        """How many entries became tasks."""
        return self.admissions[Admission.WAITING]


async def put_entries(
    sitemaps: Sitemaps,
    put_many: Callable[[Iterable[str], float], Awaitable[list[Admission]]],
    *,
    priority: float | None,
) -> PutSitemaps:
    """Put all entries.

    Args:
        sitemaps: Where they come from.
        put_many: Puts URLs with a priority.
        priority: That of all. If None, each entry has that which its site says.
    """
    admissions: Counter[Admission] = Counter()

    async def put(batch: list[SitemapEntry]) -> None:
        urls: dict[float, list[str]] = {}
        for entry in batch:
            own = _USUAL_PRIORITY if entry.priority is None else round(entry.priority, 1)
            urls.setdefault(own if priority is None else priority, []).append(entry.url)
        for each, group in urls.items():
            admissions.update(await put_many(group, each))

    batch: list[SitemapEntry] = []
    async for entry in sitemaps:
        batch.append(entry)
        if len(batch) == _AT_A_TIME:
            await put(batch)
            batch = []
    await put(batch)
    return PutSitemaps({each: admissions[each] for each in Admission}, tuple(sitemaps.files))
