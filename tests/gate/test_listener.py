"""A listener receives the events of each permit, or only those that it names; others are not even built."""

import asyncio
from typing import Any

import pytest

import polite
from polite import events as kinds
from polite.events import BackedOff, Event, Granted, Left, PermitDelayed, Reclaimed, Refused, Skipped
from tests.gate.support import PAGE, opened, visit

pytestmark = pytest.mark.virtual_time


class Choosy:
    """A listener that names its events."""

    def __init__(self, *events: type[Event]) -> None:
        self.events = frozenset(events)
        self.seen: list[Event] = []

    def __call__(self, event: Event, /) -> None:
        self.seen.append(event)


async def one_of_each(gate: polite.Gate) -> None:
    await visit(gate)
    await visit(gate, status=429)
    with pytest.raises(polite.Disallowed):
        await gate.acquire("https://site.test/private")


@pytest.mark.parametrize("kind", [Granted, PermitDelayed, Left, BackedOff, Refused, kinds.RobotsFetched])
async def test_a_listener_that_names_an_event_receives_no_other(kind: type[Event]) -> None:
    listener = Choosy(kind)
    async with opened(listener=listener) as (gate, _):
        await one_of_each(gate)

    assert {type(event) for event in listener.seen} == {kind}


@pytest.mark.parametrize("events", [[], (), "Granted", [int], Granted, [Granted("", 0.0, "")], {Event}, 3])
async def test_what_names_no_classes_of_events_is_refused(events: Any) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.events = events

        def __call__(self, event: Event, /) -> None: ...

    with pytest.raises(polite.InvalidOption, match=r"listener\.events"):
        async with opened(listener=Recorder()):
            pass


async def left(status: int | None, **options: Any) -> Left:
    """Hold a permit for 7 s, and report after 2 s."""
    listener = Choosy(Left)
    async with opened(listener=listener, **options) as (gate, _), gate.permit(PAGE) as permit:
        await asyncio.sleep(2)
        if status is not None:
            permit.report(status=status)
        await asyncio.sleep(5)
    (event,) = listener.seen
    assert isinstance(event, Left)
    return event


@pytest.mark.parametrize("latency_factor", [0.0, 2.0])
@pytest.mark.parametrize(
    ("reported", "status", "elapsed_s"),
    [(200, 200, 2.0), (503, 503, 2.0), (99, None, 2.0), (None, None, None)],
)
async def test_the_end_of_a_permit_tells_its_status_and_times(
    reported: int | None, status: int | None, elapsed_s: float | None, latency_factor: float
) -> None:
    event = await left(reported, pacing=polite.PacingPolicy(latency_factor=latency_factor))

    assert event.url == PAGE
    assert (event.status, event.elapsed_s, event.held_s) == (status, elapsed_s, 7.0)


async def test_each_end_of_a_permit_is_told_once() -> None:
    listener = Choosy(Left, Skipped, Reclaimed)
    async with opened(listener=listener, pacing=polite.PacingPolicy(max_hold=600)) as (gate, _):
        permit = await gate.acquire(PAGE)
        permit.leave()
        permit.leave()
        permit = await gate.acquire(PAGE)
        permit.unsent()
        permit.leave()
        permit = await gate.acquire(PAGE)
        await asyncio.sleep(1_000)
        permit.leave()

    assert [type(event) for event in listener.seen] == [Left, Skipped, Reclaimed, Left]


async def test_listeners_that_come_later_receive_what_they_want_until_they_go() -> None:
    first, late, other = Choosy(Granted), Choosy(Granted, Left), Choosy(Refused)
    async with opened(listener=first) as (gate, _):
        await visit(gate)
        end = gate.listen(late)
        gate.listen(other)
        await one_of_each(gate)
        end()
        end()
        await visit(gate)

    assert [len(each.seen) for each in (first, late, other)] == [4, 4, 1]


async def test_a_listener_that_fails_or_goes_does_not_hinder_the_next() -> None:
    told = Choosy(Granted)
    async with opened() as (gate, _):

        def once(_: Event, /) -> None:
            end()
            raise ZeroDivisionError

        end = gate.listen(once)
        gate.listen(told)
        await visit(gate)

    assert len(told.seen) == 1
