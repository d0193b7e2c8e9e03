"""OpenTelemetry: the counts, times and gauges of gates as instruments, and on request spans.

Names follow the semantic conventions, version 1.44.0, where these have one: `user_agent.name`, `http.response.status_code`,
`error.type`, and on spans `server.address`, `server.port`, `url.full` and `http.request.method`. Metrics have no
`server.address`, which `http.client.request.duration` requires: a crawl would have a series for each host.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from time import time_ns
from typing import Any
from weakref import WeakKeyDictionary

from polite import blocking
from polite.errors import InvalidOption, redact_url
from polite.events import Event, Granted, Left, RobotsFetched
from polite.gate.gate import Gate
from polite.integrations.hop import needing, require_any_gate
from polite.integrations.metrics import BOUNDS_S, COUNTS, GAUGES, TIMES, Measures, Metric, ObservedGates
from polite.origin import Target
from polite.version import __version__

with needing("opentelemetry-api", "opentelemetry"):
    from opentelemetry import metrics, trace
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, TracerProvider
    from opentelemetry.util.types import AttributeValue

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"

Attributes = Mapping[str, AttributeValue]


def observe(
    gate: Gate | blocking.Gate,
    *,
    meter_provider: MeterProvider | None = None,
    tracer_provider: TracerProvider | None = None,
    spans: bool = False,
) -> Callable[[], None]:
    """Export the metrics of a gate and its frontiers, until it closes or the returned function is called.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            polite.integrations.opentelemetry.observe(gate)

    Call it when the gate was just opened: most counts begin now. The attribute `user_agent.name` is the crawler's name. Gates of
    one name are added up. No attribute names an origin or a URL, so the number of series is the same for one origin and for a
    million. Counts and gauges are read when they are collected; each time of a permit is recorded as it ends, since instruments
    for times cannot be read later.

    Args:
        gate: A gate.
        meter_provider: Makes the instruments; by default the global one.
        tracer_provider: Makes the spans; by default the global one.
        spans: Whether each robots.txt fetch, each wait for a permit, and each permit becomes a span. They name the origin and the
            URL, without its query, and cost as much as a permit does.

    Raises:
        InvalidOption: It is no gate or no provider, or the gate is observed there already; or `tracer_provider` without `spans`.
        GateClosed: The gate is one for threads, and was closed.
    """
    require_any_gate(gate)
    for option, value, method in (
        ("meter_provider", meter_provider, "get_meter"),
        ("tracer_provider", tracer_provider, "get_tracer"),
    ):
        if value is not None and not callable(getattr(value, method, None)):
            raise InvalidOption(f"{option} must be a provider of opentelemetry-api, got {value!r}")
    if tracer_provider is not None and not spans:
        raise InvalidOption("tracer_provider has no effect without spans=True")
    with _lock:
        key = metrics if meter_provider is None else meter_provider
        if key not in _of_provider:
            _of_provider[key] = _Instruments(meter_provider)
        instruments = _of_provider[key]
    with ExitStack() as ends:
        recording = _Recording(instruments, _of_agent(str(gate.agent.tokens[0])))
        ends.callback(instruments.gates.add(gate, recording))
        if spans:
            tracer = trace.get_tracer("polite", __version__, tracer_provider, SCHEMA)
            ends.callback(gate.listen(_Spans(tracer)))
        return ends.pop_all().close


class _Recording(Measures):
    """Counts, and records times at once."""

    def __init__(self, instruments: "_Instruments", attributes: Attributes) -> None:
        super().__init__()
        self._instruments = instruments.times
        self._attributes = attributes

    def time(self, metric: Metric, seconds: float) -> None:
        self._instruments[metric].record(seconds, self._attributes)


class _Instruments:
    """The instruments of one provider. They last as long as it: opentelemetry-python has no way to end one."""

    def __init__(self, provider: MeterProvider | None) -> None:
        self.gates = ObservedGates()
        meter = metrics.get_meter("polite", __version__, provider, SCHEMA)
        for metric in (*COUNTS, *GAUGES):
            counts = metric in COUNTS
            create = meter.create_observable_counter if counts else meter.create_observable_up_down_counter
            read = partial(self._read, metric)
            create(f"polite.{metric.name}", [read], metric.unit, metric.description)
        histogram = partial(meter.create_histogram, explicit_bucket_boundaries_advisory=BOUNDS_S)
        self.times = {each: histogram(f"polite.{each.name}", each.unit, each.description) for each in TIMES}

    def _read(self, metric: Metric, _: CallbackOptions) -> Iterable[Observation]:
        for agent, reading in self.gates.read().items():
            for labels, value in reading.values[metric.name].items():
                named = (_attribute(*label) for label in zip(metric.labels, labels, strict=True))
                yield Observation(value, {**_of_agent(agent), **dict(named)})


class _Spans:
    """A listener that makes spans of what has ended. The span that is current in the task, if any, is their parent."""

    events = frozenset({RobotsFetched, Granted, Left})

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Granted):
            self._span("polite.permit.wait", event.waited_s, _of_url(event.url))
        elif isinstance(event, Left):
            self._span("polite.permit.hold", event.held_s, _of_url(event.url) | _of_status(event.status))
        elif isinstance(event, RobotsFetched):
            attributes = _of_url(f"{event.origin}/robots.txt") | _of_status(event.status)
            attributes |= {f"polite.{name}": getattr(event, name) for name in ("outcome", "reason", "hops")}
            if not event.origin.startswith("ftp:"):
                attributes["http.request.method"] = "GET"
            # A missing robots.txt (404) is no error: it allows everything.
            if event.outcome == "unreachable":
                attributes["error.type"] = event.reason
            self._span("GET /robots.txt", event.elapsed_s, attributes, SpanKind.CLIENT)

    def _span(
        self, name: str, seconds: float, attributes: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        now = time_ns()
        began = now - int(seconds * 1e9)
        span = self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=began)
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)


_lock = threading.Lock()
# Under `metrics` those of the global provider, whichever that becomes: it may be set later.
_of_provider: WeakKeyDictionary[object, _Instruments] = WeakKeyDictionary()


def _of_agent(agent: str) -> Attributes:
    return {"user_agent.name": agent}


def _attribute(label: str, value: str) -> tuple[str, AttributeValue]:
    """Return the attribute of a label. A status that is not registered was folded into its class."""
    if label == "status":
        label = "status_class"
        if value.isdigit():
            return "http.response.status_code", int(value)
    return f"polite.{label}", value


def _of_url(url: str) -> dict[str, Any]:
    target = Target.of(url)
    origin = target.origin
    # Without the brackets of an IPv6 address, as the conventions have it. A query may have a token.
    found = {"server.address": origin.host.strip("[]"), "url.full": redact_url(target.url.partition("?")[0])}
    return found if origin.port is None else found | {"server.port": origin.port}


def _of_status(status: int | None) -> dict[str, Any]:
    return {} if status is None else {"http.response.status_code": status}
