"""Prometheus: what a registry exports of gates, how many series that is, and what is left when gates close."""

import gc
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest

import polite
from polite.events import Refused
from polite.gate.tally import BOUNDS_S
from polite.integrations.metrics import COUNTS, GAUGES, TIMES
from polite.integrations.prometheus import observe
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.blocking.support import opened as opened_for_threads
from tests.gate.support import PAGE, RULES, opened, visit
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

AGENT = {"agent": "testbot"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"polite_{name}", AGENT | labels)


def series(registry: CollectorRegistry) -> set[tuple[str, Any]]:
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in registry.collect()
        for sample in family.samples
    }


async def test_counts_times_and_gauges_of_a_gate_are_exported(registry: CollectorRegistry) -> None:
    script = {
        "https://site.test/robots.txt": Reply(200, RULES),
        "https://down.test/robots.txt": Reply(503),
    }
    async with opened(ScriptedTransport(script)) as (gate, _):
        observe(gate, registry=registry)
        await visit(gate)
        await visit(gate, status=429)
        for url in ("https://site.test/private", "https://down.test/"):
            with pytest.raises(polite.Disallowed):
                await gate.acquire(url)
        permit = await gate.acquire(PAGE)

        assert value(registry, "permits_granted_total") == 3
        assert value(registry, "permits_delayed_total") == 3
        assert value(registry, "permits_inside") == 1
        assert value(registry, "permits_waiting") == 0
        assert value(registry, "origins_known") == 2
        assert value(registry, "robots_memory_bytes") == gate.memory_used
        assert value(registry, "permits_ended_total", status_class="2xx") == 1
        assert value(registry, "permits_ended_total", status_class="4xx") == 1
        assert value(registry, "urls_refused_total", reason="RULE") == 1
        assert value(registry, "urls_refused_total", reason="UNREACHABLE") == 1
        assert value(registry, "backoffs_total", status="429") == 1
        assert value(registry, "robots_fetches_total", outcome="found", reason="OK") == 1
        assert value(registry, "robots_fetches_total", outcome="unreachable", reason="SERVER_ERROR") == 1
        assert value(registry, "permit_wait_duration_seconds_count") == 3
        assert value(registry, "permit_wait_duration_seconds_bucket", le="1.0") == 2
        assert value(registry, "permit_hold_duration_seconds_sum") == 0
        permit.leave()


async def test_tasks_of_frontiers_are_counted(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        frontier = polite.Frontier(gate, max_tries=2)
        await frontier.put_many([PAGE, "http://[::1"])
        assert value(registry, "tasks_queued") == 1
        frontier.close()
        async for permit in frontier:
            async with permit:
                permit.report(status=200)
                permit.retry()

        assert value(registry, "tasks_queued") == 0
        assert value(registry, "tasks_retried_total") == 1
        assert value(registry, "tasks_dropped_total") == 2
        assert value(registry, "task_wait_duration_seconds_count") == 2
        assert value(registry, "permit_wait_duration_seconds_count") == 0


async def test_the_exposition_is_what_the_client_library_writes_for_valid_metrics(
    registry: CollectorRegistry,
) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        await visit(gate)

        families = {family.name: family for family in registry.collect()}
        text = generate_latest(registry).decode()

    assert len(families) == len(COUNTS) + len(TIMES) + len(GAUGES)
    assert all(family.documentation for family in families.values())
    assert text.count("# HELP") == len(families)
    assert f'polite_permit_hold_duration_seconds_bucket{{agent="testbot",le="{BOUNDS_S[-1]}"}} 1.0' in text


async def test_the_reference_has_each_metric_as_it_is_exported(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        families = [
            (f"{family.name}_total" if family.type == "counter" else family.name, family.documentation)
            for family in registry.collect()
        ]

    metrics = [
        (f"polite.{metric.name}", metric.unit, ", ".join(f"`{label}`" for label in metric.labels))
        for metric in (*COUNTS, *TIMES, *GAUGES)
    ]
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()
    rows = [
        f"| `{name}` | `{other}`, {kind} | `{unit}` | {labels + ' ' if labels else ''}| {documentation} |"
        for (name, documentation), (other, unit, labels), kind in zip(
            families,
            metrics,
            ["counter"] * len(COUNTS) + ["histogram"] * len(TIMES) + ["gauge"] * len(GAUGES),
            strict=True,
        )
    ]
    assert [line for line in page.splitlines() if line.startswith("| `polite_")] == rows
    assert f"in seconds: {', '.join(f'{bound:g}' for bound in BOUNDS_S)}" in " ".join(page.split())


async def test_the_number_of_series_does_not_grow_with_origins_or_statuses(
    registry: CollectorRegistry,
) -> None:
    async def crawl(origins: range, statuses: range) -> set[tuple[str, Any]]:
        for number in origins:
            status = statuses[number % len(statuses)]
            await visit(gate, f"https://host{number}.test/", status=status)
        return series(registry)

    async with scripted_gate() as gate:
        observe(gate, registry=registry)
        few = await crawl(range(200), range(200, 400))
        many = await crawl(range(200, 1_100), range(100, 1_000))

        assert value(registry, "origins_known") == 1_100
    # The only new ones are back-offs by status: 429 and 503.
    assert {labels for name, labels in many - few if name == "polite_backoffs_total"} == {
        (("agent", "testbot"), ("status", "429")),
        (("agent", "testbot"), ("status", "503")),
    }
    assert {name for name, _ in many - few} == {"polite_backoffs_total", "polite_backoffs_created"} & {
        name for name, _ in many
    }
    assert not any("host" in label for _, labels in many for _, label in labels)


async def test_a_gate_that_closes_takes_its_series_along(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        assert series(registry)

    assert not series(registry)
    assert not generate_latest(registry)


async def test_observing_may_end_before_the_gate(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        end = observe(gate, registry=registry)
        end()
        end()
        await visit(gate)

        assert not series(registry)
        assert gate.services.on_granted is None
        observe(gate, registry=registry)
        assert value(registry, "permit_wait_duration_seconds_count") == 0


async def test_gates_of_one_name_are_added_up_and_no_counter_falls_when_one_closes(
    registry: CollectorRegistry,
) -> None:
    async with opened() as (first, _):
        observe(first, registry=registry)
        await visit(first)
        for _ in range(2):
            async with opened() as (other, _):
                observe(other, registry=registry)
                await visit(other)
                await other.acquire(PAGE)
                assert value(registry, "permits_inside") == 1
            assert value(registry, "permits_inside") == 0

        assert value(registry, "permits_granted_total") == 5
        assert value(registry, "permits_ended_total", status_class="2xx") == 3
        assert value(registry, "permit_wait_duration_seconds_count") == 5
        assert value(registry, "urls_refused_total", reason="RULE") is None
    async with opened() as (late, _):
        observe(late, registry=registry)
        assert value(registry, "permits_granted_total") == 0


async def test_gates_of_several_names_and_registries_are_apart(registry: CollectorRegistry) -> None:
    elsewhere = CollectorRegistry()
    async with AsyncExitStack() as stack:
        for agent in ("OneBot/1.0", "OtherBot/1.0"):
            gate = await stack.enter_async_context(scripted_gate(agent=agent))
            observe(gate, registry=registry)
            observe(gate, registry=elsewhere)
            await visit(gate)
        for each in (registry, elsewhere):
            for agent in ("onebot", "otherbot"):
                assert each.get_sample_value("polite_permits_granted_total", {"agent": agent}) == 1


async def test_the_default_is_the_registry_that_everybody_uses() -> None:
    async with opened() as (gate, _):
        observe(gate)
        assert value(REGISTRY, "permits_granted_total") == 0
    assert value(REGISTRY, "permits_granted_total") is None


async def test_a_gate_is_not_counted_twice(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        with pytest.raises(polite.InvalidOption, match="observed already"):
            observe(gate, registry=registry)


async def test_what_is_no_gate_or_no_registry_is_refused(registry: CollectorRegistry) -> None:
    wrong: Any = "gate"
    with pytest.raises(polite.InvalidOption, match="gate must be"):
        observe(wrong, registry=registry)
    async with opened() as (gate, _):
        with pytest.raises(polite.InvalidOption, match="registry must be"):
            observe(gate, registry=wrong)
    assert not series(registry)


async def test_a_registry_with_metrics_of_the_same_name_is_refused(registry: CollectorRegistry) -> None:
    Counter("polite_permits_granted", "somebody else's", registry=registry)
    async with opened() as (gate, _):
        with pytest.raises(polite.InvalidOption, match="polite_permits_granted"):
            observe(gate, registry=registry)
        assert gate.services.on_granted is None
    assert len(series(registry)) <= 2


async def test_a_gate_that_was_closed_before_is_not_observed(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        pass
    observe(gate, registry=registry)

    assert not series(registry)


async def test_a_gate_that_cannot_be_observed_whole_is_left_as_it_was(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    async with opened() as (gate, _):
        monkeypatch.setattr(polite.Gate, "on_close", broken)
        with pytest.raises(KeyboardInterrupt):
            observe(gate, registry=registry)
        assert gate.services.on_granted is None
        assert not gate.services.listener.wants(Refused)
        assert not series(registry)


async def test_a_collector_that_the_user_removed_hinders_no_close(registry: CollectorRegistry) -> None:
    async with opened() as (gate, _):
        observe(gate, registry=registry)
        (collector,) = tuple(registry._collector_to_names)
        registry.unregister(collector)

    assert not series(registry)


async def test_a_registry_and_a_gate_that_are_forgotten_are_not_kept() -> None:
    registry: CollectorRegistry | None = CollectorRegistry()
    forgotten = ref(registry)
    async with opened() as (gate, _):
        observe(gate, registry=registry)
    del gate
    registry = None
    gc.collect()

    assert forgotten() is None


@pytest.fixture
def scraping(registry: CollectorRegistry) -> Iterator[list[bytes]]:
    """Scrape in another thread, as an HTTP server does, until the test ends."""
    scraped: list[bytes] = []
    stop = threading.Event()

    def scrape() -> None:
        while not stop.is_set():
            scraped.append(generate_latest(registry))

    thread = threading.Thread(target=scrape)
    thread.start()
    yield scraped
    stop.set()
    thread.join()


async def test_another_thread_may_scrape_while_gates_come_and_go(
    registry: CollectorRegistry, scraping: list[bytes]
) -> None:
    for _ in range(20):
        async with opened() as (gate, _):
            observe(gate, registry=registry)
            for status in (200, 429, 503):
                await visit(gate, status=status)
    scraped = len(scraping)
    while len(scraping) < scraped + 2:
        pass

    assert not scraping[-1]


def test_a_gate_for_threads_is_observed(registry: CollectorRegistry) -> None:
    script = {"https://site.test/robots.txt": Reply(200, b"User-agent: *\nDisallow: /private\n")}
    with opened_for_threads(ScriptedTransport(script)) as gate:
        observe(gate, registry=registry)
        with gate.permit(PAGE) as permit:
            permit.report(status=200)
            assert value(registry, "permits_inside") == 1

        assert value(registry, "permits_ended_total", status_class="2xx") == 1
        assert value(registry, "tasks_queued") == 0
    assert not series(registry)
    with pytest.raises(polite.GateClosed):
        observe(gate, registry=registry)
    assert not series(registry)
