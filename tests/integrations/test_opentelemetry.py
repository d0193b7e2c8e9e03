"""OpenTelemetry: what the SDK exports of gates, how many series that is, and which spans come on request."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv.attributes import (
    error_attributes,
    http_attributes,
    server_attributes,
    url_attributes,
)
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import SpanKind, StatusCode

import polite
from polite.gate.tally import BOUNDS_S
from polite.integrations.metrics import COUNTS, GAUGES, TIMES
from polite.integrations.opentelemetry import SCHEMA, observe
from polite.pacing.outcome import Pause
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, RULES, opened, visit
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

Point = NumberDataPoint | HistogramDataPoint
AGENT = {"user_agent.name": "testbot"}


class Meters:
    """A meter provider, and what it collects."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def points(self) -> dict[tuple[str, tuple[tuple[str, Any], ...]], Point]:
        data = self._reader.get_metrics_data()
        return {
            (metric.name, tuple(sorted(dict(point.attributes or {}).items()))): point
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    def value(self, name: str, attributes: dict[str, Any] = AGENT) -> Any:
        point = self.points()[f"polite.{name}", tuple(sorted((AGENT | attributes).items()))]
        return point.value if isinstance(point, NumberDataPoint) else point


@pytest.fixture
def meters() -> Iterator[Meters]:
    meters = Meters()
    yield meters
    meters.provider.shutdown()


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracers(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


async def test_counts_times_and_gauges_of_a_gate_are_exported(meters: Meters) -> None:
    async with opened() as (gate, _):
        observe(gate, meter_provider=meters.provider)
        await visit(gate)
        await visit(gate, status=429)
        with pytest.raises(polite.Disallowed):
            await gate.acquire("https://site.test/private")
        permit = await gate.acquire(PAGE)

        assert meters.value("permits.granted") == 3
        assert meters.value("permits.inside") == 1
        assert meters.value("origins.known") == 1
        assert meters.value("permits.ended", {"polite.status_class": "2xx"}) == 1
        assert meters.value("urls.refused", {"polite.reason": "RULE"}) == 1
        assert meters.value("backoffs", {"http.response.status_code": 429}) == 1
        assert meters.value("robots.fetches", {"polite.outcome": "found", "polite.reason": "OK"}) == 1
        waits = meters.value("permit.wait.duration")
        assert (waits.count, tuple(waits.explicit_bounds)) == (3, BOUNDS_S)
        assert meters.value("permit.hold.duration").count == 2
        assert meters.value("robots.fetch.duration").count == 1
        permit.leave()


async def test_tasks_of_frontiers_are_timed_apart(meters: Meters) -> None:
    async with opened() as (gate, _):
        observe(gate, meter_provider=meters.provider)
        frontier = polite.Frontier(gate)
        await frontier.put(PAGE)
        assert meters.value("tasks.queued") == 1
        async with await frontier.__anext__() as permit:
            permit.report(status=200)

        assert meters.value("task.wait.duration").count == 1
        assert ("polite.permit.wait.duration", tuple(AGENT.items())) not in meters.points()


async def test_each_metric_has_its_unit_and_description(meters: Meters) -> None:
    async with opened() as (gate, _):
        observe(gate, meter_provider=meters.provider)
        await visit(gate)
        data = meters._reader.get_metrics_data()

    assert data is not None
    ((scope,),) = [resource.scope_metrics for resource in data.resource_metrics]
    named = {f"polite.{each.name}": each for each in (*COUNTS, *TIMES, *GAUGES)}
    assert scope.schema_url == SCHEMA in {each.value for each in Schemas}
    assert scope.metrics
    for metric in scope.metrics:
        assert (metric.unit, metric.description) == (named[metric.name].unit, named[metric.name].description)


async def test_the_number_of_series_does_not_grow_with_origins_or_statuses(meters: Meters) -> None:
    async with scripted_gate() as gate:
        observe(gate, meter_provider=meters.provider)
        for number in range(1_000):
            await visit(gate, f"https://host{number}.test/", status=100 + number % 900)
        points = meters.points()

    assert len(points) < 60
    assert not any("host" in str(value) for _, attributes in points for _, value in attributes)


async def test_a_status_that_is_not_registered_counts_by_its_class(meters: Meters) -> None:
    class Strict:
        def rest(self, outcome: Any, context: Any) -> Any:
            return Pause(0.0, "it said so", strike=outcome.status == 499)

    async with opened(throttle=Strict()) as (gate, _):
        observe(gate, meter_provider=meters.provider)
        await visit(gate, status=499)

        assert meters.value("backoffs", {"polite.status_class": "4xx"}) == 1


async def test_a_gate_that_closes_is_observed_no_longer(meters: Meters) -> None:
    async with opened() as (first, _):
        observe(first, meter_provider=meters.provider)
        await visit(first)
        async with opened() as (other, _):
            end = observe(other, meter_provider=meters.provider)
            await visit(other)
            assert meters.value("permits.granted") == 2
            end()
        assert meters.value("permits.granted") == 2

    assert not [name for name, _ in meters.points() if not name.endswith(".duration")]


async def test_without_a_provider_nothing_fails() -> None:
    async with opened() as (gate, _):
        end = observe(gate, spans=True)
        await visit(gate)
        end()
        await visit(gate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"meter_provider": 3}, "meter_provider must be"),
        ({"tracer_provider": 3, "spans": True}, "tracer_provider must be"),
        ({"tracer_provider": TracerProvider(shutdown_on_exit=False)}, "without spans=True"),
    ],
)
async def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    async with opened() as (gate, _):
        with pytest.raises(polite.InvalidOption, match=message):
            observe(gate, **options)
        assert gate.services.on_granted is None


async def test_a_provider_that_makes_no_tracer_leaves_the_gate_as_it_was(meters: Meters) -> None:
    class Broken(TracerProvider):
        def get_tracer(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

    async with opened() as (gate, _):
        with pytest.raises(ZeroDivisionError):
            observe(gate, meter_provider=meters.provider, tracer_provider=Broken(), spans=True)
        assert gate.services.on_granted is None

        observe(gate, meter_provider=meters.provider)
        assert meters.value("permits.granted") == 0


async def test_there_are_no_spans_by_default(
    meters: Meters, exporter: InMemorySpanExporter, tracers: TracerProvider
) -> None:
    async with opened() as (gate, _):
        observe(gate, meter_provider=meters.provider)
        with tracers.get_tracer("test").start_as_current_span("page"):
            await visit(gate)

    assert [span.name for span in exporter.get_finished_spans()] == ["page"]


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return round((span.end_time - span.start_time) / 1e9, 3)


async def test_spans_tell_of_robots_fetches_waits_and_permits(
    meters: Meters, exporter: InMemorySpanExporter, tracers: TracerProvider
) -> None:
    script = {"https://[::1]:8443/robots.txt": Reply(200, RULES), "https://down.test/robots.txt": Reply(503)}
    url = "https://user:secret@[::1]:8443/page?token=secret#top"
    async with opened(ScriptedTransport(script)) as (gate, _):
        end = observe(gate, meter_provider=meters.provider, tracer_provider=tracers, spans=True)
        with tracers.get_tracer("test").start_as_current_span("page"):
            await visit(gate, url)
        with pytest.raises(polite.RobotsUnreachable):
            await gate.acquire("https://down.test/")
        end()
        await visit(gate, url)

    robots, wait, held, page, failed = exporter.get_finished_spans()
    place = {
        server_attributes.SERVER_ADDRESS: "::1",
        server_attributes.SERVER_PORT: 8443,
        url_attributes.URL_FULL: "https://[::1]:8443/page",
    }
    assert [span.name for span in (robots, wait, held)] == [
        "GET /robots.txt",
        "polite.permit.wait",
        "polite.permit.hold",
    ]
    assert robots.kind is SpanKind.CLIENT
    assert wait.kind is held.kind is SpanKind.INTERNAL
    assert dict(wait.attributes or {}) == place
    assert dict(held.attributes or {}) == place | {http_attributes.HTTP_RESPONSE_STATUS_CODE: 200}
    assert (seconds(wait), seconds(held)) == (1.0, 0.0)
    assert {span.parent.span_id for span in (robots, wait, held) if span.parent} == {page.context.span_id}
    assert robots.status.status_code is StatusCode.UNSET
    assert dict(failed.attributes or {}) == {
        server_attributes.SERVER_ADDRESS: "down.test",
        server_attributes.SERVER_PORT: 443,
        url_attributes.URL_FULL: "https://down.test/robots.txt",
        http_attributes.HTTP_REQUEST_METHOD: "GET",
        http_attributes.HTTP_RESPONSE_STATUS_CODE: 503,
        error_attributes.ERROR_TYPE: "SERVER_ERROR",
        "polite.outcome": "unreachable",
        "polite.reason": "SERVER_ERROR",
        "polite.hops": 0,
    }
    assert failed.status.status_code is StatusCode.ERROR
    assert "secret" not in str([span.to_json() for span in exporter.get_finished_spans()])
    assert trace.get_current_span().get_span_context().is_valid is False


async def test_a_scheme_without_a_port_and_a_method_has_neither_in_its_span(
    meters: Meters, exporter: InMemorySpanExporter, tracers: TracerProvider
) -> None:
    script = ScriptedTransport({"ftp://site.test/robots.txt": Reply(200, RULES)})
    async with opened(transports={"ftp": script}) as (gate, _):
        observe(gate, meter_provider=meters.provider, tracer_provider=tracers, spans=True)
        await gate.check("ftp://site.test/page")

    (robots,) = exporter.get_finished_spans()
    assert "http.request.method" not in (robots.attributes or {})
    assert (robots.attributes or {})["server.port"] == 21
