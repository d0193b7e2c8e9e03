"""The metrics that both exporters offer: names, units, labels, and where the value of each is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from polite import blocking
from polite.gate.counters import Counters
from polite.gate.gate import Gate
from polite.gate.measures import Histogram, Measures

AnyGate = Gate | blocking.Gate

# By the values of the metric's labels.
Values = Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Metric:
    """What all metrics have.

    Attributes:
        name: The name after "polite.", as OpenTelemetry writes it. Prometheus has "_" for "." and a suffix for the unit, by the
            rules of OpenTelemetry's compatibility with Prometheus: a dashboard fits both.
        unit: As in the Unified Code for Units of Measure: "s", "By", or in braces what is counted.
        description: One sentence.
        labels: The names of the labels, besides the agent's.
    """

    name: str
    unit: str
    description: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Metric):
    """A number that only grows.

    Attributes:
        read: Returns the values.
    """

    read: Callable[[Counters, Measures], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(Metric):
    """A histogram of times.

    Attributes:
        read: Returns it.
    """

    read: Callable[[Measures], Histogram]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge(Metric):
    """A number that is read from the gate when it is exported.

    Attributes:
        read: Returns it.
    """

    read: Callable[[AnyGate], int]


def _counter(read: Callable[[Counters], int]) -> Callable[[Counters, Measures], Values]:
    return lambda counters, _: {(): read(counters)}


def _measure(read: Callable[[Measures], int]) -> Callable[[Counters, Measures], Values]:
    return lambda _, measures: {(): read(measures)}


def _labelled(values: Mapping[str, int]) -> Values:
    # A copy: the gate's thread may add a key meanwhile.
    return {(label,): count for label, count in dict(values).items()}


def _pairs(values: Mapping[tuple[str, str], int]) -> Values:
    return {(one, other): count for (one, other), count in dict(values).items()}


COUNTS = (
    Count("permits.granted", "{permit}", "Permits that were granted", read=_counter(lambda c: c.granted)),
    Count(
        "permits.delayed",
        "{permit}",
        "Permits that were granted after a wait",
        read=_counter(lambda c: c.waited),
    ),
    Count(
        "permits.ended",
        "{permit}",
        "Permits that ended, by the class of the reported status",
        ("status_class",),
        read=lambda _, m: _labelled(m.ended),
    ),
    Count(
        "permits.skipped",
        "{permit}",
        "Turns that were granted and given back without a request",
        read=_counter(lambda c: c.skipped),
    ),
    Count(
        "permits.reclaimed",
        "{permit}",
        "Turns that were taken back, since they were held for longer than PacingPolicy.max_hold",
        read=_counter(lambda c: c.reclaimed),
    ),
    Count(
        "urls.refused",
        "{url}",
        "URLs that robots.txt disallows, by reason",
        ("reason",),
        read=lambda _, m: _labelled(m.refused),
    ),
    Count(
        "backoffs",
        "{backoff}",
        "Back-offs after a response, by its status",
        ("status",),
        read=lambda _, m: _labelled(m.backed_off),
    ),
    Count(
        "demands",
        "{response}",
        "Responses that asked for a payment or a licence",
        ("demand",),
        read=lambda _, m: _labelled(m.demands),
    ),
    Count(
        "robots.fetches",
        "{fetch}",
        "Fetches of robots.txt, by outcome and reason",
        ("outcome", "reason"),
        read=lambda _, m: _pairs(m.robots_fetches),
    ),
    Count(
        "robots.requests",
        "{request}",
        "Requests for robots.txt, redirects included",
        read=_counter(lambda c: c.robots),
    ),
    Count(
        "circuits.opened",
        "{circuit}",
        "Circuits that opened after failures in a row",
        read=_counter(lambda c: c.opened),
    ),
    Count(
        "circuits.closed",
        "{circuit}",
        "Circuits that closed after a response",
        read=_counter(lambda c: c.closed),
    ),
    Count(
        "origins.postponed",
        "{origin}",
        "Origins whose tasks were postponed, since robots.txt was unreachable",
        read=_measure(lambda m: m.postponed),
    ),
    Count(
        "tasks.retried", "{task}", "Tasks of frontiers that were requeued", read=_measure(lambda m: m.retried)
    ),
    Count(
        "tasks.dropped", "{task}", "Tasks of frontiers that were given up", read=_measure(lambda m: m.dropped)
    ),
    Count(
        "store.outages",
        "{outage}",
        "How often the shared store ceased to respond",
        read=_measure(lambda m: m.outages),
    ),
)

TIMES = (
    Times(
        "permit.wait.duration",
        "s",
        "How long permits waited for rules and their turn",
        read=lambda m: m.permit_wait,
    ),
    Times(
        "task.wait.duration",
        "s",
        "How long tasks of frontiers were queued before their permit",
        read=lambda m: m.task_wait,
    ),
    Times("permit.hold.duration", "s", "How long permits were held", read=lambda m: m.hold),
    Times(
        "robots.fetch.duration",
        "s",
        "How long fetches of robots.txt took on the network",
        read=lambda m: m.robots_fetch,
    ),
)

GAUGES = (
    Gauge(
        "permits.waiting", "{permit}", "Permits that wait for rules or their turn", read=lambda g: g.waiting
    ),
    Gauge("permits.inside", "{permit}", "Permits that have a turn", read=lambda g: g.inside),
    Gauge("tasks.queued", "{task}", "Tasks that wait in frontiers", read=lambda g: g.queued),
    Gauge("origins.known", "{origin}", "Origins whose rules are remembered", read=lambda g: g.known_origins),
    Gauge("robots.memory", "By", "About how much memory rules and files take", read=lambda g: g.memory_used),
)
