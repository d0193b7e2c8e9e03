"""What metrics cost a permit: CPU of `async with gate.permit(url)` without any, and observed by each exporter.

All gates are in one process and take turns, each at each place of the order. CPU is what `time.process_time` counts. The URLs are
distinct, the rules of their origins are known, and no request has to wait. OpenTelemetry's API does nothing without an SDK, so
both are measured: the SDK with a reader in memory that is never read.
"""

import asyncio
import statistics
from collections.abc import Callable
from contextlib import AsyncExitStack

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

import polite
from benchmarks.gate import permits, robots
from polite.events import Event
from polite.integrations import opentelemetry, prometheus

ORIGINS, ROUNDS, BATCH = 200, 24, 1_000
# The most that each may cost, as a part of a permit; None: what it costs.
TARGETS = {"prometheus": 0.25}


def ignore(event: Event) -> None:
    """A listener of all events, for comparison."""


def _sdk() -> MeterProvider:
    return MeterProvider([InMemoryMetricReader()])


KINDS: dict[str, Callable[[polite.Gate], object]] = {
    "none": lambda gate: None,
    "none, again": lambda gate: None,
    "ended": lambda gate: prometheus.observe(gate, registry=CollectorRegistry())(),
    "prometheus": lambda gate: prometheus.observe(gate, registry=CollectorRegistry()),
    "opentelemetry, no SDK": opentelemetry.observe,
    "opentelemetry, SDK": lambda gate: opentelemetry.observe(gate, meter_provider=_sdk()),
    "opentelemetry, SDK, spans": lambda gate: opentelemetry.observe(
        gate, meter_provider=_sdk(), spans=True, tracer_provider=TracerProvider()
    ),
    "a listener of all events": lambda gate: gate.listen(ignore),
}


async def measure() -> dict[str, list[float]]:
    """Return microseconds of CPU per permit, by round."""
    origins = [f"https://host{n}.example" for n in range(ORIGINS)]
    pacing = polite.PacingPolicy(min_delay=0.0)
    async with AsyncExitStack() as opened:
        gates: dict[str, polite.Gate] = {}
        for kind, observe in KINDS.items():
            opening = polite.open_gate("BenchBot/1.0", pacing=pacing, transports=robots(origins))
            gates[kind] = await opened.enter_async_context(opening)
            observe(gates[kind])
            for origin in origins:
                await gates[kind].check(f"{origin}/")
        taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for turn in range(-1, ROUNDS):
            # Each kind comes at each place.
            first = turn % len(KINDS)
            for kind in (*tuple(KINDS)[first:], *tuple(KINDS)[:first]):
                urls = [f"{origins[n % ORIGINS]}/shop/item-{turn}-{n}.html?ref={n}" for n in range(BATCH)]
                us = await permits(gates[kind], urls)
                if turn >= 0:
                    taken[kind].append(us)
    return taken


def main() -> None:
    taken = asyncio.run(measure())
    print(f"{'us of CPU per permit':28} {'median':>8} {'min':>8} {'more than none':>16}")
    for kind, figures in taken.items():
        more = statistics.median(a / b for a, b in zip(figures, taken["none"], strict=True)) - 1
        least = min(figures) / min(taken["none"]) - 1
        target = f"   (target: at most {TARGETS[kind]:.0%})" if kind in TARGETS else ""
        print(
            f"{kind:28} {statistics.median(figures):8.2f} {min(figures):8.2f} {more:+10.1%} {least:+9.1%}{target}"
        )


if __name__ == "__main__":
    main()
