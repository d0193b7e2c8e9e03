"""The table of an origin queue's transitions: each row occurs, and what has no row stops the frontier."""

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

import polite
import polite.frontier
from polite.events import Dropped, Event, RobotsFetched
from polite.frontier.frontier import Frontier
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.queue_states import TRANSITIONS, NoTransition, QueueEvent, QueueState
from polite.robots.exchange import Reply
from polite.schedulers import Fifo
from polite.testing import ScriptedTransport
from tests.frontier.support import Opened, memory_only
from tests.simulation.simulation import run
from tests.support import RULES, A, B, fetch_all

pytestmark = pytest.mark.pure("records the events of OriginQueue by replacing a method")

Row = tuple[QueueState, QueueEvent]
S, E = QueueState, QueueEvent
WORLDS = 120
C, D = "https://c.test", "https://d.test"
# Rules that expire early, and are not replaced by old ones.
EARLY = polite.RobotsPolicy(default_ttl=300, keep_stale=False)
SHOWN: set[Row] = set()


def shows(*rows: Row) -> pytest.MarkDecorator:
    """Name the rows that a test shows to occur, beside the simulated crawls."""
    SHOWN.update(rows)
    return pytest.mark.parametrize("rows", [set(rows)], ids=["rows"])


@pytest.fixture
def occurred(monkeypatch: pytest.MonkeyPatch) -> set[Row]:
    """The rows that queues went through."""
    rows: set[Row] = set()
    move = OriginQueue.move

    def record(queue: OriginQueue, event: QueueEvent) -> None:
        move(queue, event)
        rows.add((before.get(queue, S.NEW), event))
        before[queue] = queue.state

    before: dict[OriginQueue, QueueState] = {}
    monkeypatch.setattr(OriginQueue, "move", record)
    return rows


def withdraw(frontier: Frontier, *urls: str) -> None:
    """Have a shared store take the URLs' origins away."""
    for url in urls:
        frontier._parts.dispatcher.withdraw(polite.Origin.of(url))


def state_of(frontier: Frontier, url: str) -> QueueState:
    dispatcher: Any = frontier._parts.dispatcher
    return dispatcher._queues.get(polite.Origin.of(url)).state  # type: ignore[no-any-return]


@pytest.mark.slow("runs the simulation")
def test_simulated_crawls_show_the_other_rows(occurred: set[Row]) -> None:
    for seed in range(WORLDS):
        run(seed, None)

    rows = {(state, event) for state, events in TRANSITIONS.items() for event in events}
    assert rows - SHOWN - occurred == set()


def test_every_state_is_in_the_table_and_every_event_leads_somewhere() -> None:
    assert set(TRANSITIONS) == set(QueueState)
    assert {event for events in TRANSITIONS.values() for event in events} == set(QueueEvent)
    assert {state for events in TRANSITIONS.values() for state in events.values()} == set(QueueState) - {
        S.NEW
    }


def test_only_an_origin_queue_writes_its_fields() -> None:
    fields = set(OriginQueue.__slots__)
    written = [
        f"{path.name}:{node.lineno}"
        for path in Path(polite.frontier.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and node.attr in fields
        and isinstance(node.value, ast.Name)
        and node.value.id in {"queue", "waiting"}
    ]

    assert written == []


@memory_only
@pytest.mark.virtual_time
@pytest.mark.parametrize("at", ["in a put", "in a seeker", "with a turn"])
async def test_an_event_without_a_row_stops_the_frontier_with_that_error(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    broken = {
        "in a put": (S.NEW, E.SEEK),
        "in a seeker": (S.DECIDING, E.TURN_REQUESTED),
        "with a turn": (S.WAITING_TURN, E.TURN_CAME),
    }[at]
    events = {event: then for event, then in TRANSITIONS[broken[0]].items() if event is not broken[1]}
    monkeypatch.setitem(TRANSITIONS, broken[0], events)  # type: ignore[arg-type]

    async with opened() as (frontier, _):
        failing = fetch_all(frontier) if at != "in a put" else frontier.put(A)
        if at != "in a put":
            await frontier.put(A)
        async with asyncio.timeout(100):
            with pytest.raises(NoTransition, match=f"{A} is {broken[0].name}, and {broken[1].name} happened"):
                await failing


# Rows of rare events.


@memory_only
@pytest.mark.virtual_time
@shows((S.SEEKING, E.GIVE_UP))
async def test_an_origin_whose_budget_is_spent_is_given_up(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened(pacing=polite.PacingPolicy(max_pages=1)) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        frontier.close()
        await fetch_all(frontier)

    assert frontier.dropped == 1
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.WAITING_SLOT, E.REMOVE), (S.POSTPONED, E.REMOVE))
async def test_origins_withdrawn_before_their_rules_are_known_request_nothing_more(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    transport = ScriptedTransport({f"{B}/robots.txt": Reply(500)})
    async with opened(transport, frontier={"max_robots_fetches": 1}) as (frontier, _):
        await frontier.put(B)
        await asyncio.sleep(1)
        transport.hold()
        await frontier.put_many([A, C])
        await asyncio.sleep(1)
        withdraw(frontier, C, A, B)
        transport.let_go()
        await asyncio.sleep(1_000)

        assert transport.asked == [f"{B}/robots.txt", f"{A}/robots.txt"]
        assert frontier._parts.dispatcher.left == []
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.READY, E.WITHDRAW), (S.WITHDRAWN, E.WITHDRAW), (S.WITHDRAWN, E.SEEK), (S.WITHDRAWN, E.REMOVE))
async def test_tasks_of_withdrawn_origins_are_forgotten_and_later_ones_are_given_out(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{B}/1", f"{C}/1", f"{A}/2"])
        await asyncio.sleep(10)
        withdraw(frontier, A, B, A)
        await frontier.put(f"{A}/3")
        permits = [await anext(frontier) for _ in range(2)]

        assert [permit.url for permit in permits] == [f"{C}/1", f"{A}/3"]
        assert frontier._parts.dispatcher.left == []
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.WAITING_TURN, E.WITHDRAW))
async def test_an_origin_withdrawn_while_it_waits_for_its_turn_gets_none(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        await asyncio.sleep(10)
        async with await anext(frontier):
            withdraw(frontier, A)
        permit = await anext(frontier)
        await asyncio.sleep(10)

        assert permit.url == f"{B}/1"
        assert frontier._parts.dispatcher.left == []
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@pytest.mark.parametrize("state", [S.FETCHING_RULES, S.WAITING_SLOT, S.POSTPONED])
@shows((S.DECIDING, E.WITHDRAW), (S.WAITING_SLOT, E.WITHDRAW), (S.POSTPONED, E.WITHDRAW))
async def test_an_origin_withdrawn_while_its_rules_are_renewed_has_its_tasks_forgotten(
    opened: Opened, occurred: set[Row], rows: set[Row], state: QueueState
) -> None:
    transport = ScriptedTransport({f"{A}/robots.txt": [Reply(404), Reply(500)]})
    async with opened(transport, robots=EARLY, frontier={"max_robots_fetches": 1}) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{B}/1", f"{C}/1"])
        await asyncio.sleep(1_000)
        await asyncio.gather(gate.check(B), gate.check(C))
        if state is not S.POSTPONED:
            transport.hold()
        if state is S.WAITING_SLOT:
            await frontier.put(D)
        permits = [await anext(frontier)]
        if state is S.POSTPONED:
            await asyncio.sleep(1)
        assert state_of(frontier, A) is state
        withdraw(frontier, A)
        assert state_of(frontier, A) is S.WITHDRAWN
        transport.let_go()
        permits.append(await anext(frontier))

        assert [permit.url for permit in permits] == [f"{B}/1", f"{C}/1"]
        assert A not in {task.origin.text for task in frontier._parts.dispatcher.left}
    event = {S.FETCHING_RULES: S.DECIDING}.get(state, state)
    assert (event, E.WITHDRAW) in occurred & rows


@memory_only
@pytest.mark.virtual_time
@shows((S.DROPPING, E.WITHDRAW), (S.DROPPING, E.KEEP))
@pytest.mark.parametrize("then", [E.WITHDRAW, E.KEEP])
async def test_an_origin_that_is_given_up_may_be_withdrawn_or_saved(
    opened: Opened, occurred: set[Row], rows: set[Row], then: QueueEvent
) -> None:
    frontiers: list[Frontier] = []

    def pause_when_out_of_reach(event: Event) -> None:
        if isinstance(event, RobotsFetched) and event.outcome == "unreachable":
            frontiers[0].pause()

    script = {f"{A}/robots.txt": [Reply(404), Reply(500), Reply(404)]}
    options = {"robots": EARLY, "listener": pause_when_out_of_reach, "frontier": {"max_robots_tries": 1}}
    async with opened(script, **options) as (frontier, gate):
        frontiers.append(frontier)
        await frontier.put(f"{A}/1")
        await asyncio.sleep(1_000)
        worker = asyncio.create_task(anext(frontier))
        await asyncio.sleep(100)
        assert state_of(frontier, A) is S.DROPPING
        if then is E.WITHDRAW:
            withdraw(frontier, A)
        await gate.check(A)
        await frontier.put(f"{A}/2")
        frontier.resume()

        assert (await worker).url == (f"{A}/2" if then is E.WITHDRAW else f"{A}/1")
        assert frontier.dropped == 0
    assert (S.DROPPING, then) in occurred & rows


@memory_only
@pytest.mark.virtual_time
@shows((S.READY, E.TURN_CAME))
async def test_a_turn_taken_for_a_worker_that_is_cancelled_in_that_step_is_given_back(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        await asyncio.sleep(10)
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            await anext(frontier)

        worker = asyncio.create_task(work())
        await begun.wait()  # not a step longer, if tasks are eager too
        worker.cancel()
        await asyncio.sleep(10)
        permit = await anext(frontier)

        assert permit.url == f"{A}/"
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.WAITING_TURN, E.TURN_REQUESTED))
async def test_a_chosen_task_waits_until_all_that_was_put_unchecked_is_decided(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened(robots=EARLY) as (frontier, gate):
        await frontier.put(f"{A}/first")
        await asyncio.sleep(1_000)
        await frontier.put_many(f"{A}/{number}" for number in range(1_200))
        await gate.check(A)
        permit = await anext(frontier)

        assert permit.url == f"{A}/first"
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.CHOSEN, E.TURN_REQUESTED))
async def test_a_chosen_task_that_new_rules_refuse_leaves_its_turn_to_the_next(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened({f"{A}/robots.txt": [Reply(404), RULES]}, robots=EARLY) as (frontier, gate):
        await frontier.put_many([f"{A}/private/1", f"{A}/2"])
        await asyncio.sleep(1_000)
        await gate.check(A)
        permit = await anext(frontier)

        assert permit.url == f"{A}/2"
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.DROPPING, E.SEEK))
async def test_a_task_put_while_others_are_dropped_seeks_anew(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    dropped = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, Dropped):
            dropped.set()

    script = {f"{A}/robots.txt": [Reply(500), Reply(500), Reply(404)]}
    async with opened(script, listener=hear, frontier={"max_robots_tries": 2}) as (frontier, _):
        await frontier.put_many(f"{A}/{number}" for number in range(600))
        await dropped.wait()
        assert frontier.dropped < 600
        await frontier.put(f"{A}/late")
        permit = await anext(frontier)

        assert (permit.url, frontier.dropped) == (f"{A}/late", 600)
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.WAITING_TURN, E.GIVE_UP))
async def test_an_origin_for_which_no_turn_can_be_requested_is_given_up(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/robots.txt":
            return (target.origin,)
        raise ZeroDivisionError("no scope")

    pacing = polite.PacingPolicy(scopes=scopes)
    async with opened(pacing=pacing, frontier={"max_robots_tries": 1}) as (frontier, _):
        await frontier.put(A)
        frontier.close()

        assert await fetch_all(frontier) == []
        assert frontier.dropped == 1
    assert rows <= occurred


@memory_only
@pytest.mark.virtual_time
@shows((S.DECIDING, E.SEEK))
async def test_a_queue_that_waits_for_long_leaves_its_fetch_slot_and_seeks_anew(
    opened: Opened, occurred: set[Row], rows: set[Row]
) -> None:
    async with opened(frontier={"max_robots_fetches": 1}) as (frontier, gate):
        for seconds in (30.0, 1_000.0):
            gate.services.turns.hold(polite.Target.of(A), seconds, "a test")
            await frontier.put(A)
        await frontier.put(B)
        permit = await anext(frontier)

        assert permit.url == f"{B}/"
        assert state_of(frontier, A) is S.POSTPONED
    assert rows <= occurred


class NotedReady(Fifo):
    """Notes which origins it is told are ready."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def ready(self, origin: polite.Origin) -> None:
        self.told.append(origin.text)
        super().ready(origin)


@memory_only
@pytest.mark.virtual_time
async def test_a_scheduler_is_told_once_that_an_origin_is_ready_though_it_is_withdrawn(
    opened: Opened,
) -> None:
    scheduler = NotedReady()
    async with opened(frontier={"scheduler": scheduler}) as (frontier, _):
        await frontier.put_many([A, B])
        await asyncio.sleep(10)
        withdraw(frontier, A)

        assert sorted(scheduler.told) == [A, B]
