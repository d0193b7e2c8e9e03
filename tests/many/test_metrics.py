"""Metrics of processes that share a crawl: each exports what it did itself, and what is left of the whole crawl."""

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from polite.integrations.prometheus import observe
from tests.many.test_shared_frontiers import Process, Site, urls
from tests.many.test_store_away import Wire
from tests.simulation.machines.own_server import own_server
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(f"polite_{name}", {"agent": "testbot"} | labels)
    assert found is not None
    return found


async def test_what_the_processes_did_adds_up_and_what_is_left_is_the_crawls() -> None:
    site = Site()
    registries = [CollectorRegistry() for _ in range(2)]
    async with AsyncExitStack() as stack:
        group = [await stack.enter_async_context(Process(site, str(n))) for n in range(2)]
        for process, registry in zip(group, registries, strict=True):
            observe(process.gate, registry=registry)
        await group[0].frontier.put_many(urls(12, 10))
        for process in group:
            process.frontier.close()
        await asyncio.sleep(5)
        assert [value(each, "tasks_queued") for each in registries] == [120, 120]
        async with asyncio.timeout(60):
            await asyncio.gather(*(process.work() for process in group))

        assert sum(value(each, "permits_granted_total") for each in registries) == 120
        assert sum(value(each, "task_wait_duration_seconds_count") for each in registries) == 120
        fetched = [
            each.get_sample_value(
                "polite_robots_fetches_total", {"agent": "testbot", "outcome": "found", "reason": "OK"}
            )
            for each in registries
        ]
        assert sum(number or 0 for number in fetched) == 12
        assert [value(each, "tasks_queued") for each in registries] == [0, 0]


async def test_an_outage_of_the_store_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    wire, registry = Wire(), CollectorRegistry()
    client: Any = VirtualClient(VirtualServer(own_server(), lambda: 1_700_000_000.0 + now()), wire)
    async with scripted_gate(store=client, lease=15.0) as gate:
        observe(gate, registry=registry)
        async with gate.permit("https://a.test/"):
            pass
        wire.cut = True
        await asyncio.sleep(60)
        wire.cut = False
        await asyncio.sleep(30)

        assert value(registry, "store_outages_total") == 1
    lines = [(record.levelno, vars(record).get("polite_event")) for record in caplog.records]
    assert lines[-2:] == [(logging.WARNING, "store_away"), (logging.WARNING, "store_back")]
