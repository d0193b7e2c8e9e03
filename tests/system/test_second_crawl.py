"""A second crawl of an unchanged site is answered by 304s: a file is all that is left of the first."""

from collections import Counter
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

import polite
from polite.stores.sqlite import SqliteStore
from tests.support import scripted_gate

ROOT = "https://site.test"
PAGES = 200


class Site:
    """Pages with strong tags, weak tags, dates, or both; one in fifty has neither. It logs the status of each response."""

    def __init__(self) -> None:
        self.versions = [1] * PAGES
        self.statuses: Counter[int] = Counter()

    def answer(self, number: int, asked: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
        version = self.versions[number]
        fields = {}
        if number % 50 and number % 3 < 2:
            fields["ETag"] = f'{"W/" * (number % 3)}"{number}-{version}"'
        if number % 50 and (number % 2 or number % 3 == 2):
            fields["Last-Modified"] = formatdate(1_000_000_000 + 60 * version, usegmt=True)
        # RFC 9110, 13.2.2: If-None-Match first, and the date only without it.
        if "If-None-Match" in asked:
            same = asked["If-None-Match"] == fields.get("ETag")
        else:
            same = asked.get("If-Modified-Since", "") == fields.get("Last-Modified")
        status = 304 if same else 200
        self.statuses[status] += 1
        return status, fields, f"page {number} of version {version}"


async def crawl(site: Site, copies: dict[str, str], **options: Any) -> list[float]:
    """Fetch all pages as a crawler does that has `copies` of an earlier run. Return when they are due."""
    due: list[float] = []
    pacing = polite.PacingPolicy(min_delay=0)
    async with scripted_gate({}, recrawl=polite.RecrawlPolicy(), pacing=pacing, **options) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put_many([f"{ROOT}/{number}" for number in range(PAGES)])
        frontier.close()
        async for permit in frontier:
            async with permit:
                known = await gate.conditional(permit.url)
                status, fields, text = site.answer(int(permit.url.rpartition("/")[2]), known)
                permit.report(status=status, headers=fields)
                if status == 200:
                    copies[permit.url] = text
            due.append(permit.due)
    return due


@pytest.mark.slow("a crawl of a large site")
@pytest.mark.virtual_time
@pytest.mark.parametrize("option", ["store", "validators"])
async def test_a_second_crawl_of_an_unchanged_site_is_nearly_all_304s(tmp_path: Path, option: str) -> None:
    site, copies, runs = Site(), {}, []
    for version in (1, 1, 2):
        site.versions[7], site.statuses = version, Counter()
        due = await crawl(site, copies, **{option: SqliteStore(tmp_path / "crawl.sqlite")})
        assert len(due) == PAGES
        runs.append(site.statuses)

    first, second, third = runs
    assert first == {200: PAGES}
    assert second[304] >= 0.95 * PAGES
    assert second == {200: PAGES // 50, 304: PAGES - PAGES // 50}
    assert third == {200: PAGES // 50 + 1, 304: PAGES - PAGES // 50 - 1}
    assert copies == {
        f"{ROOT}/{number}": f"page {number} of version {1 + (number == 7)}" for number in range(PAGES)
    }
