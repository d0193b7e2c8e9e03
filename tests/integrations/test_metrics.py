"""What Prometheus and OpenTelemetry export of gates, how many series that is, what is left when gates close; and spans."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv.attributes import (
    error_attributes,
    http_attributes,
    server_attributes,
    url_attributes,
)
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, Counter, generate_latest

import polite
from polite.events import BackedOff
from polite.integrations import opentelemetry, prometheus
from polite.integrations.metrics import COUNTS, GAUGES, TIMES, Measures
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.blocking.support import opened as opened_for_threads
from tests.gate.support import PAGE, RULES, opened, visit

pytestmark = pytest.mark.virtual_time

METRICS = {metric.name: metric for metric in (*COUNTS, *TIMES, *GAUGES)}


def test_a_server_that_makes_up_statuses_makes_no_more_than_a_bounded_number_of_keys() -> None:
    measures = Measures()
    for status in range(1_000):
        measures(BackedOff("https://site.test", status, 1.0, ""))
    for status in (None, *range(100, 1_000)):
        measures.left(status, 0.0)

    ended, backed_off = measures.counts["permits.ended"], measures.counts["backoffs"]
    assert ended == {("none",): 1, **{(f"{digit}xx",): 100 for digit in range(1, 6)}, ("other",): 400}
    assert len(backed_off) < 80
    assert backed_off["429",] == backed_off["503",] == 1
    assert backed_off["4xx",] > 50
    assert backed_off["none",] == 100


class Prometheus:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def observe(self, gate):
        return prometheus.observe(gate, registry=self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        metric = METRICS[name]
        suffix = {"s": "_seconds_count", "By": "_bytes"}.get(metric.unit, "_total" * (metric in COUNTS))
        sample = f"polite_{name.replace('.', '_')}{suffix}"
        return self.registry.get_sample_value(sample, {"agent": "testbot", **labels})

    def series(self):
        samples = (sample for family in self.registry.collect() for sample in family.samples)
        return {(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples}


class OpenTelemetry:
    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])

    def observe(self, gate, **options):
        return opentelemetry.observe(gate, meter_provider=self.provider, **options)

    def points(self):
        data = self.reader.get_metrics_data()
        return {
            (metric.name, tuple(sorted(dict(point.attributes or {}).items()))): point
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    def value(self, name: str, **labels: str) -> float | None:
        attributes = {"user_agent.name": "testbot"}
        for label, value in labels.items():
            known = label == "status" and value.isdigit()
            attributes |= {"http.response.status_code": int(value)} if known else {f"polite.{label}": value}
        point = self.points().get((f"polite.{name}", tuple(sorted(attributes.items()))))
        return None if point is None else getattr(point, "value", getattr(point, "count", None))

    def series(self):
        # An instrument for times cannot be ended.
        return {series for series in self.points() if not series[0].endswith(".duration")}


@pytest.fixture
def registry() -> Prometheus:
    return Prometheus()


@pytest.fixture
def meters():
    meters = OpenTelemetry()
    yield meters
    meters.provider.shutdown()


@pytest.fixture(params=["registry", "meters"])
def exported(request):
    return request.getfixturevalue(request.param)


async def test_counts_times_and_gauges_of_a_gate_are_exported(exported):
    script = {"https://site.test/robots.txt": Reply(200, RULES), "https://down.test/robots.txt": Reply(503)}
    async with opened(ScriptedTransport(script)) as (gate, _):
        exported.observe(gate)
        await visit(gate)
        await visit(gate, status=429)
        for url in ("https://site.test/private", "https://down.test/"):
            with pytest.raises(polite.Disallowed):
                await gate.acquire(url)
        permit = await gate.acquire(PAGE)

        permits = (
            ("permits.granted", 3),
            ("permits.delayed", 3),
            ("permits.inside", 1),
            ("permits.waiting", 0),
        )
        times = ("permit.wait.duration", 3), ("permit.hold.duration", 2), ("robots.fetch.duration", 2)
        for name, value in (*permits, *times, ("origins.known", 2), ("robots.memory", gate.memory_used)):
            assert exported.value(name) == value, name
        for name, labels in (
            ("permits.ended", {"status_class": "2xx"}),
            ("permits.ended", {"status_class": "4xx"}),
            ("urls.refused", {"reason": "RULE"}),
            ("urls.refused", {"reason": "UNREACHABLE"}),
            ("backoffs", {"status": "429"}),
            ("robots.fetches", {"outcome": "found", "reason": "OK"}),
            ("robots.fetches", {"outcome": "unreachable", "reason": "SERVER_ERROR"}),
        ):
            assert exported.value(name, **labels) == 1, name
        permit.leave()


async def test_observing_ends_with_the_gate_or_before(exported):
    async with opened() as (gate, _):
        end = exported.observe(gate)
        end()
        end()
        await visit(gate)
        assert not exported.series()
        assert gate.services.listener.on_granted is None

        exported.observe(gate)
        assert not exported.value("permit.wait.duration")
    assert not exported.series()
    # One that was closed before is not observed.
    exported.observe(gate)
    assert not exported.series()


async def test_gates_of_one_name_are_added_up_and_no_counter_falls_when_one_closes(exported):
    async with opened() as (first, _):
        exported.observe(first)
        await visit(first)
        for _ in range(2):
            async with opened() as (other, _):
                exported.observe(other)
                await visit(other)
                await other.acquire(PAGE)
                assert exported.value("permits.inside") == 1
            assert exported.value("permits.inside") == 0

        assert exported.value("permits.granted") == 5
        assert exported.value("permits.ended", status_class="2xx") == 3
        assert exported.value("permit.wait.duration") == 5
        assert exported.value("urls.refused", reason="RULE") is None
    async with opened() as (late, _):
        exported.observe(late)
        assert exported.value("permits.granted") == 0


def test_a_gate_for_threads_is_observed(exported):
    with opened_for_threads() as gate:
        exported.observe(gate)
        with gate.permit(PAGE) as permit:
            permit.report(status=200)
            assert exported.value("permits.inside") == 1

        assert exported.value("permits.ended", status_class="2xx") == 1
    with pytest.raises(polite.GateClosed):
        exported.observe(gate)
    assert not exported.series()


async def test_what_cannot_be_observed_is_refused(registry: Prometheus, meters: OpenTelemetry) -> None:
    taken = Prometheus()
    Counter("polite_permits_granted", "somebody else's", registry=taken.registry)
    no_spans = {"tracer_provider": TracerProvider(shutdown_on_exit=False)}
    async with opened() as (gate, _):
        for observe, options, message in (
            (taken.observe, {}, "polite_permits_granted"),
            (prometheus.observe, {"registry": "registry"}, "registry must be"),
            (opentelemetry.observe, {"meter_provider": 3}, "meter_provider must be"),
            (opentelemetry.observe, {"tracer_provider": 3, "spans": True}, "tracer_provider must be"),
            (opentelemetry.observe, no_spans, "without spans=True"),
        ):
            with pytest.raises(polite.InvalidOption, match=message):
                observe(gate, **options)
            assert gate.services.listener.on_granted is None
        for exported in (registry, meters):
            with pytest.raises(polite.InvalidOption, match="gate must be"):
                exported.observe("gate")
            exported.observe(gate)
            with pytest.raises(polite.InvalidOption, match="observed already"):
                exported.observe(gate)


async def test_another_thread_may_scrape_while_gates_come_and_go(registry: Prometheus) -> None:
    stop = threading.Event()

    def scrape() -> int:
        return sum(1 for _ in iter(lambda: stop.is_set() or generate_latest(registry.registry), True))

    with ThreadPoolExecutor() as pool, ExitStack() as ending:
        ending.callback(stop.set)
        scraped = pool.submit(scrape)
        for _ in range(20):
            async with opened() as (gate, _):
                registry.observe(gate)
                await visit(gate, status=429)

    assert scraped.result() > 0


def seconds(span):
    return round((span.end_time - span.start_time) / 1e9, 3)


async def test_spans_tell_of_robots_fetches_waits_and_permits(meters: OpenTelemetry):
    exporter, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    transport = ScriptedTransport(
        {
            "https://[::1]:8443/robots.txt": Reply(200, RULES),
            "https://down.test/robots.txt": Reply(503),
            "ftp://site.test/robots.txt": Reply(200, RULES),
        }
    )
    url = "https://user:secret@[::1]:8443/page?token=secret#top"
    async with opened(transports={"https": transport, "ftp": transport}) as (gate, _):
        end = meters.observe(gate, tracer_provider=tracers, spans=True)
        with tracers.get_tracer("test").start_as_current_span("page"):
            await visit(gate, url)
        with pytest.raises(polite.RobotsUnreachable):
            await gate.acquire("https://down.test/")
        await gate.check("ftp://site.test/page")
        end()
        await visit(gate, url)

    robots, wait, held, page, failed, ftp = exporter.get_finished_spans()
    place = {
        server_attributes.SERVER_ADDRESS: "::1",
        server_attributes.SERVER_PORT: 8443,
        url_attributes.URL_FULL: "https://[::1]:8443/page",
    }
    assert [(span.name, span.kind) for span in (robots, wait, held)] == [
        ("GET /robots.txt", SpanKind.CLIENT),
        ("polite.permit.wait", SpanKind.INTERNAL),
        ("polite.permit.hold", SpanKind.INTERNAL),
    ]
    assert dict(wait.attributes or {}) == place
    assert dict(held.attributes or {}) == place | {http_attributes.HTTP_RESPONSE_STATUS_CODE: 200}
    assert (seconds(wait), seconds(held)) == (1.0, 0.0)
    assert {span.parent.span_id for span in (robots, wait, held) if span.parent} == {page.context.span_id}
    assert (robots.status.status_code, failed.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
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
    assert "http.request.method" not in (ftp.attributes or {})
    assert (ftp.attributes or {})["server.port"] == 21
    assert "secret" not in str([span.to_json() for span in exporter.get_finished_spans()])
    assert trace.get_current_span().get_span_context().is_valid is False
