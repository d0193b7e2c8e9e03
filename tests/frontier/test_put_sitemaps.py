"""frontier.put_sitemaps: entries become tasks, with their priority, in the gate's turns."""

from datetime import UTC, datetime

import pytest

import polite
from polite.robots.exchange import Reply
from polite.task import Admission
from tests.sitemaps.support import index, pages, urlset
from tests.support import fetch_all, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://example.com"
SCRIPT = {
    f"{SITE}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /private\n"),
    f"{SITE}/sitemap.xml": Reply(
        200,
        urlset(
            f"<loc>{SITE}/low</loc><priority>0.2</priority><lastmod>2026-01-01</lastmod>",
            f"<loc>{SITE}/usual</loc>",
            f"<loc>{SITE}/high</loc><priority>0.94</priority>",
            f"<loc>{SITE}/private/a</loc>",
            f"<loc>{SITE}/usual</loc>",
        ).encode(),
    ),
}


async def test_entries_become_tasks_in_the_order_of_their_priority():
    async with scripted_gate(SCRIPT, pacing=polite.PacingPolicy(min_delay=0)) as gate:
        frontier = polite.Frontier(gate, scheduler=polite.schedulers.Priority())
        put = await frontier.put_sitemaps(SITE, depth=3)
        frontier.close()
        tasks = []
        async for permit in frontier:
            async with permit:
                tasks.append((permit.url, permit.task.priority, permit.task.depth))

    assert tasks == [(f"{SITE}/high", 0.9, 3), (f"{SITE}/usual", 0.5, 3), (f"{SITE}/low", 0.2, 3)]
    assert put.waiting == 3
    assert put.admissions == {
        Admission.WAITING: 3,
        Admission.DUPLICATE: 1,
        Admission.REFUSED: 1,
        Admission.INVALID: 0,
    }
    assert [(file.url, file.entries) for file in put.files] == [(f"{SITE}/sitemap.xml", 5)]


async def test_a_priority_of_the_caller_and_a_date_count_for_all():
    async with scripted_gate(SCRIPT) as gate:
        frontier = polite.Frontier(gate)
        put = await frontier.put_sitemaps(SITE, since=datetime(2026, 6, 1, tzinfo=UTC), priority=7)
        (task, *others) = await frontier.drain()

    assert put.waiting == 2
    assert {task.priority, *(each.priority for each in others)} == {7}


async def test_many_entries_of_many_files_are_put(monkeypatch: pytest.MonkeyPatch):
    script = {f"{SITE}/i.xml": Reply(200, index(f"{SITE}/1.xml", f"{SITE}/2.xml").encode())} | {
        f"{SITE}/{number}.xml": Reply(200, pages(1_100, start=number * 1_000).encode()) for number in (1, 2)
    }
    async with scripted_gate(script, pacing=polite.PacingPolicy(min_delay=0)) as gate:
        frontier = polite.Frontier(gate)
        put = await frontier.put_sitemaps(SITE, files=[f"{SITE}/i.xml"])
        frontier.close()

        assert len(await fetch_all(frontier)) == put.waiting == 2_100
        assert put.admissions[Admission.DUPLICATE] == 100


async def test_a_site_out_of_reach_raises():
    async with scripted_gate({f"{SITE}/robots.txt": Reply(503)}) as gate:
        with pytest.raises(polite.RobotsUnreachable):
            await polite.Frontier(gate).put_sitemaps(SITE)
