"""Prometheus: the counts, times and gauges of gates, read when a registry is scraped."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from weakref import WeakKeyDictionary, ref

from polite import blocking
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.integrations import metrics
from polite.integrations.hop import needing, require_any_gate
from polite.options import instance

with needing("prometheus-client", "prometheus"):
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.registry import Collector
    from prometheus_client.utils import floatToGoString

Family = CounterMetricFamily | HistogramMetricFamily | GaugeMetricFamily

_UNITS = {"s": "seconds", "By": "bytes"}
_BOUNDS = [*map(floatToGoString, metrics.BOUNDS_S), "+Inf"]


def observe(gate: Gate | blocking.Gate, *, registry: CollectorRegistry = REGISTRY) -> Callable[[], None]:
    """Export the metrics of a gate and its frontiers, until it closes or the returned function is called.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            polite.integrations.prometheus.observe(gate)

    Call it when the gate was just opened: most counts begin now. A scrape reads them; the gate is not slowed by it. The label
    `agent` is the crawler's name. Gates of one name are added up. No label names an origin or a URL, so the number of series is
    the same for one origin and for a million.

    In the multiprocess mode of prometheus-client, metrics of this kind are not exported.

    Args:
        gate: A gate.
        registry: The registry that is scraped. One that already has a metric of ours from elsewhere is refused.

    Raises:
        InvalidOption: It is no gate or no registry, or the gate is observed there already.
        GateClosed: The gate is one for threads, and was closed.
    """
    require_any_gate(gate)
    instance("registry", registry, CollectorRegistry, "a prometheus_client.CollectorRegistry")
    with _lock:
        collector = _collectors.setdefault(registry, _Collector(registry))
    return collector.gates.add(gate, metrics.Measures())


class _Collector(Collector):
    """What a registry asks for the values of all gates. Registered while there is one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Weakly: a registry that is forgotten must not be kept by what it would have asked.
        self._registry = ref(registry)
        self._registered = False
        self.gates = metrics.ObservedGates(self._changed)

    def describe(self) -> Iterator[Family]:
        """Yield the metrics without values, so that the registry notices others of the same name."""
        return _families({})

    def collect(self) -> Iterator[Family]:
        """Yield the metrics."""
        return _families(self.gates.read())

    def _changed(self, gates: int) -> None:
        registry = self._registry()
        if registry is None or self._registered == (gates > 0):
            return
        if not self._registered:
            try:
                registry.register(self)
            except ValueError as error:
                raise InvalidOption(
                    f"registry: it has metrics of these names from elsewhere: {error}"
                ) from error
        else:
            # The user may have cleared the registry.
            with suppress(KeyError):
                registry.unregister(self)
        self._registered = gates > 0


_lock = threading.Lock()
_collectors: WeakKeyDictionary[CollectorRegistry, _Collector] = WeakKeyDictionary()


def _name(metric: metrics.Metric) -> str:
    unit = _UNITS.get(metric.unit)
    return f"polite_{metric.name.replace('.', '_')}" + (f"_{unit}" if unit else "")


def _families(readings: dict[str, metrics.Reading]) -> Iterator[Family]:
    def values(
        kind: type[CounterMetricFamily | GaugeMetricFamily], which: tuple[metrics.Metric, ...]
    ) -> Iterator[Family]:
        for metric in which:
            family = kind(_name(metric), metric.description, labels=("agent", *metric.labels))
            for agent, reading in readings.items():
                for labels, value in reading.values[metric.name].items():
                    family.add_metric([agent, *labels], value)
            yield family

    yield from values(CounterMetricFamily, metrics.COUNTS)
    for times in metrics.TIMES:
        histogram = HistogramMetricFamily(_name(times), times.description, labels=("agent",))
        for agent, reading in readings.items():
            each, total_s = reading.times[times.name]
            histogram.add_metric([agent], list(zip(_BOUNDS, accumulate(each), strict=True)), total_s)
        yield histogram
    yield from values(GaugeMetricFamily, metrics.GAUGES)
