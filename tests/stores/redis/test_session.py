"""The homes of a process: how they come and which of them leave, in virtual time."""

import asyncio
import math
import random
from collections.abc import Callable
from itertools import count

import pytest

from polite.errors import GateClosed, StoreEmptied, StoreFailed
from polite.events import Event, StoreAway, StoreBack
from polite.ports import Homes, TakenHome
from polite.stores.redis.home import Home
from polite.stores.redis.session import Remaining, Session
from polite.stores.redis.step_reply import StepReply, TaskRow
from polite.testing import LoopClock
from tests.stores.redis.homes_server import HomesServer
from tests.stores.redis.scripted_link import Fault, Request, ScriptedLink

pytestmark = pytest.mark.virtual_time
BEAT_S = 1.0


class Pacer:
    """A tenant that records what it is told."""

    def __init__(self) -> None:
        self.taken: list[TakenHome] = []
        self.handed: list[str] = []
        self.waiting: set[str] = set()
        self.rest_s = 0.0

    def take_over(self, taken: TakenHome) -> None:
        self.taken.append(taken)

    def hand_over(self, home: str) -> tuple[float, str | None]:
        self.handed.append(home)
        return self.rest_s, f"state of {home}"

    def waits(self, home: str) -> bool:
        return home in self.waiting


class Frontier:
    """A user that holds tasks of each home until the test lets it release them."""

    def __init__(self, session: Session, *, room: int = 100) -> None:
        self.session = session
        self.most = room
        self.homes: dict[str, Home] = {}
        self.withdrawn_homes: list[str] = []
        self.kept: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.replies: list[StepReply] = []
        self.failures: list[Exception] = []
        self.releases_at_once = True

    @property
    def room(self) -> int:
        return self.most - len(self.homes)

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]], note: str | None) -> None:
        self.homes[home.name] = home

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        self.told.append((home.name, origin))
        self.homes[home.name] = home

    def withdrawn(self, home: Home) -> None:
        self.withdrawn_homes.append(home.name)
        del self.homes[home.name]
        if self.releases_at_once:
            self.session.release(home)

    def keeps(self, home: Home) -> bool:
        return home.name in self.kept

    def stepped(self, partition: int, reply: StepReply) -> None:
        self.replies.append(reply)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)

    def done(self, name: str, rest_s: float = 0.0) -> None:
        self.session.release(self.homes.pop(name), rest_s)


class Process:
    """A session with its pacer, its clock and its connection."""

    def __init__(
        self, answer: Callable[[Request], Request], *, partitions: int = 1, lease_s: float = 6.0
    ) -> None:
        self.clock = LoopClock()
        self.link = ScriptedLink(answer)
        self.events: list[Event] = []
        self.pacer = Pacer()
        self.session = Session(
            self.link,
            self.clock,
            "news",
            partitions=partitions,
            lease_s=lease_s,
            keyed=False,
            max_tries=3,
            max_done=1_000,
            tell=self.events.append,
        )
        self.session.tenant = self.pacer

    def crawl(self, *, room: int = 100) -> Frontier:
        frontier = Frontier(self.session, room=room)
        self.session.user = frontier
        self.session.begin()
        return frontier

    def all_leaves(self) -> list[str]:
        return [leave[0] for request in self.link.sent for leave in request.get("leaves", [])]


def fresh(name: str, fence: int = 1) -> list[object]:
    return [name, fence, -1, True, 0, ""]


_FENCES = count(1)


def gives(request: Request) -> Request:
    """The reply of a server where everything is free."""
    return {"taken": [fresh(name, next(_FENCES)) for name in request.get("takes", [])]}


# Taking


async def test_a_session_is_the_homes_of_a_pacer() -> None:
    homes: Homes = Process(gives).session

    assert homes.live == 1


async def test_a_home_is_taken_and_its_pacer_learns_what_is_known_first() -> None:
    process = Process(
        lambda r: {"taken": [["a.com", 4, 2_000_000, False, 500_000, "{}"]] if "takes" in r else []}
    )

    home = await process.session.take("a.com")

    assert process.pacer.taken == [TakenHome("a.com", 0.5, 2.0, False, "{}")]
    assert (home.name, home.fence, home.good) == ("a.com", 4, True)
    assert process.session.held("a.com") is home
    assert await process.session.take("a.com") is home


async def test_homes_are_asked_for_together_and_again_each_200_ms() -> None:
    process = Process(lambda r: {})

    tasks = [asyncio.create_task(process.session.take(name)) for name in ("a.com", "b.com", "a.com")]
    await asyncio.sleep(0.5)

    assert [r["takes"] for r in process.link.sent] == [["a.com", "b.com"]] * 3
    assert [when for when, _ in process.link.requests] == [
        pytest.approx(t, abs=0.01) for t in (0.03, 0.23, 0.43)
    ]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_calls_for_one_home_share_it() -> None:
    process = Process(gives)

    one, other = await asyncio.gather(process.session.take("a.com"), process.session.take("a.com"))

    assert one is other
    assert len(process.pacer.taken) == 1


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    process = Process(lambda r: {})
    waiting = [asyncio.create_task(process.session.take("a.com")) for _ in range(2)]
    await asyncio.sleep(0.1)

    waiting[0].cancel()
    await asyncio.sleep(0.2)
    assert process.link.sent[-1]["takes"] == ["a.com"]
    waiting[1].cancel()
    await asyncio.sleep(0.5)

    assert "takes" not in process.link.sent[-1]
    assert len(process.link.sent) <= 4


async def test_a_home_that_nobody_wants_any_more_leaves() -> None:
    process = Process(gives)
    process.link.delay_s = 0.1
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(0.05)

    waiting.cancel()
    await asyncio.sleep(0.5)

    assert process.session.held("a.com") is None
    assert process.all_leaves() == ["a.com"]


async def test_a_wait_fails_after_60_s_without_the_store() -> None:
    process = Process(gives)
    process.link.down = True

    with pytest.raises(
        StoreFailed, match=r"redis://example\.com:6379/0 has not responded since .* connection refused"
    ):
        await process.session.take("a.com")

    assert 60.0 <= process.clock.monotonic() < 63.0


async def test_a_wait_that_began_late_lasts_60_s_too() -> None:
    process = Process(gives)
    process.link.down = True
    process.session.begin()
    await asyncio.sleep(100.0)

    started = process.clock.monotonic()
    with pytest.raises(StoreFailed):
        await process.session.take("a.com")

    assert 60.0 <= process.clock.monotonic() - started < 63.0


async def test_a_wait_goes_on_when_the_store_is_back() -> None:
    process = Process(gives)
    process.link.down = True
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(50.0)

    process.link.down = False

    assert (await waiting).good


async def test_a_home_whose_lease_is_over_is_waited_for() -> None:
    process = Process(gives)
    home = await process.session.take("a.com")
    process.link.down = True
    await asyncio.sleep(6.0)
    assert not home.good

    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(1.0)
    assert not waiting.done()
    process.link.down = False

    assert await waiting is home
    assert home.good


# Leaving


async def test_the_home_of_a_gate_stays_until_it_is_idle_for_30_s_to_a_minute() -> None:
    process = Process(gives)
    process.pacer.rest_s = 1.5
    home = await process.session.take("a.com")
    process.session.entered(home)
    await asyncio.sleep(100.0)
    assert process.session.held("a.com") is home

    process.session.left(home)
    await asyncio.sleep(29.0)
    assert process.session.held("a.com") is home
    await asyncio.sleep(35.0)

    assert process.session.held("a.com") is None
    [leave] = [leave for r in process.link.sent for leave in r.get("leaves", [])]
    assert leave == ["a.com", home.fence, 1_500_000, "state of a.com"]


async def test_a_home_that_is_waited_for_does_not_keep_others_that_are_idle() -> None:
    process = Process(gives)
    await process.session.take("a.com")
    process.pacer.waiting.add("a.com")
    await asyncio.sleep(10.0)
    await process.session.take("b.com")

    await asyncio.sleep(35.0)

    assert process.session.held("a.com") is not None
    assert process.session.held("b.com") is None


async def test_beyond_10_000_homes_the_one_used_longest_ago_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.stores.redis.held_homes._MOST_HELD", 2)
    process = Process(gives)
    first = await process.session.take("a.com")
    second = await process.session.take("b.com")
    process.session.entered(first)
    process.session.left(first)

    third = await process.session.take("c.com")
    await asyncio.sleep(0.1)

    assert [home.good for home in (first, second, third)] == [True, False, True]


async def test_a_home_that_others_want_leaves_at_once_without_demand() -> None:
    recalls: list[str] = []
    process = Process(lambda r: gives(r) | {"recalls": recalls})
    await process.session.take("a.com")

    recalls.append("a.com")
    await asyncio.sleep(1.1)

    assert process.session.held("a.com") is None
    assert process.all_leaves() == ["a.com"]


@pytest.mark.parametrize("demand", ["waits", "turn"])
async def test_with_demand_it_leaves_after_5_s_but_never_with_a_turn_open(demand: str) -> None:
    recalls: list[str] = []
    process = Process(lambda r: gives(r) | {"recalls": recalls})
    home = await process.session.take("a.com")
    if demand == "turn":
        process.session.entered(home)
    else:
        process.pacer.waiting.add("a.com")

    recalls.append("a.com")
    await asyncio.sleep(4.5)
    assert process.session.held("a.com") is home
    await asyncio.sleep(1.0)
    assert process.session.held("a.com") is None

    if demand == "turn":
        await asyncio.sleep(20.0)
        assert process.all_leaves() == []
        assert home.good
        process.session.left(home)
        await asyncio.sleep(0.1)
    assert process.all_leaves() == ["a.com"]
    assert not home.good


async def test_a_wanted_home_leaves_with_its_last_turn() -> None:
    recalls: list[str] = []
    process = Process(lambda r: gives(r) | {"recalls": recalls})
    home = await process.session.take("a.com")
    process.session.entered(home)
    recalls.append("a.com")
    await asyncio.sleep(2.0)

    process.session.left(home)

    assert process.pacer.handed == ["a.com"]


async def test_a_recalled_home_is_not_taken_again_for_a_beat() -> None:
    recalls = ["a.com"]
    process = Process(lambda r: gives(r) | {"recalls": recalls if not r["first"] else []})
    await process.session.take("a.com")
    await asyncio.sleep(1.1)
    left_at = process.clock.monotonic()
    recalls.clear()

    await process.session.take("a.com")

    assert 0.8 < process.clock.monotonic() - left_at < 1.3


# A frontier


async def test_a_frontier_picks_homes_for_which_it_has_room() -> None:
    server = HomesServer(line=["a.com", "b.com", "c.com"])
    process = Process(server.answer)

    frontier = process.crawl(room=2)
    await asyncio.sleep(0.1)

    assert set(frontier.homes) == {"a.com", "b.com"}
    assert process.link.sent[0]["room"] == 2
    assert all(home.used for home in frontier.homes.values())


async def test_partitions_share_the_room() -> None:
    process = Process(lambda r: {}, partitions=4)

    process.crawl(room=10)
    await asyncio.sleep(0.0005)

    assert [r["room"] for r in process.link.sent] == [2, 2, 2, 2]


async def test_homes_of_the_last_partition_are_picked_though_all_ask_at_one_moment() -> None:
    servers = [HomesServer() for _ in range(4)]
    # Each partition has a session of its own.
    seen: list[str] = []

    def answer(request: Request) -> Request:
        if request["session"] not in seen:
            seen.append(request["session"])
        server = servers[seen.index(request["session"])]
        reply = server.answer(request)
        return reply | {"inline": len(server.line), "held": len(server.held_by(request["session"]))}

    process = Process(answer, partitions=4)
    names = [f"{number}.com" for number in range(100)]
    servers[3].line = [name for name in names if process.session.partition(name).index == 3][:12]
    frontier = process.crawl(room=3)
    picked: set[str] = set()
    while len(picked) < 12 and asyncio.get_running_loop().time() < 10:
        for name in list(frontier.homes):
            picked.add(name)
            frontier.done(name)
        await asyncio.sleep(0.3)

    assert len(picked) == 12
    assert len(process.link.sent) < 200


async def test_a_released_home_leaves_with_its_rest_unless_the_gate_needs_it() -> None:
    server = HomesServer(line=["a.com", "b.com"])
    process = Process(server.answer)
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    process.pacer.waiting.add("b.com")

    frontier.done("a.com", rest_s=7.0)
    frontier.done("b.com")
    await asyncio.sleep(0.1)

    assert process.all_leaves() == ["a.com"]
    assert server.homes["a.com"].free_at == pytest.approx(7.1, abs=0.1)
    home = process.session.held("b.com")
    assert home is not None

    process.pacer.waiting.clear()
    process.session.entered(home)
    process.session.left(home)
    await asyncio.sleep(0.1)
    assert process.all_leaves() == ["a.com", "b.com"]


async def test_above_its_fair_share_a_process_sheds_homes_for_one_that_starves() -> None:
    server = HomesServer(line=[f"{n}.com" for n in range(6)])
    server.tasks = set(server.line)
    rich, poor = Process(server.answer), Process(server.answer)
    holder = rich.crawl()
    await asyncio.sleep(0.1)
    for name in ("0.com", "3.com"):
        rich.session.entered(holder.homes[name])
    rich.session.left(holder.homes["3.com"])

    other = poor.crawl()
    await asyncio.sleep(3.0)

    assert len(other.homes) == len(holder.homes) == 3
    assert "3.com" in other.homes, "it had served, and no turn is open"
    assert "0.com" in holder.homes, "a turn is open"


async def test_a_withdrawn_home_leaves_when_its_turn_ended_and_the_frontier_released_it() -> None:
    starving = False
    process = Process(
        lambda r: {"picked": [[*fresh("a.com"), []]] if r["first"] else [], "starving": starving, "fair": 0}
    )
    frontier = process.crawl()
    frontier.releases_at_once = False
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    process.session.entered(home)

    starving = True
    await asyncio.sleep(2.0)
    assert frontier.withdrawn_homes == ["a.com"]
    assert process.session.held("a.com") is None
    process.session.left(home)
    await asyncio.sleep(1.0)
    assert process.all_leaves() == []
    process.session.release(home)
    await asyncio.sleep(0.1)

    assert process.all_leaves() == ["a.com"]
    assert frontier.withdrawn_homes == ["a.com"]


async def test_a_home_whose_robots_txt_is_being_fetched_is_given_away_when_it_is_there() -> None:
    starving = False
    process = Process(
        lambda r: {"picked": [[*fresh("a.com"), []]]} if r["first"] else {"starving": starving, "fair": 0}
    )
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    frontier.kept.add("a.com")

    starving = True
    await asyncio.sleep(10.0)
    assert frontier.withdrawn_homes == []
    frontier.kept.clear()
    await asyncio.sleep(3.0)

    assert frontier.withdrawn_homes == ["a.com"]


async def test_a_closing_home_gets_no_news() -> None:
    later: Request = {}
    process = Process(lambda r: {"picked": [[*fresh("a.com"), []]]} if r["first"] else later)
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    process.session.entered(home)

    later |= {"starving": True, "fair": 0}
    await asyncio.sleep(1.5)
    later["news"] = [["a.com", "https://a.com", [["d", 1, 0, "[]"]]]]
    await asyncio.sleep(1.5)

    assert home.closing
    assert frontier.told == []


async def test_a_home_that_is_given_anew_is_another() -> None:
    process = Process(lambda r: {"picked": [[*fresh("a.com", r["seq"]), []]]} if r["seq"] < 3 else {})
    frontier = process.crawl()
    await asyncio.sleep(0.01)
    older = frontier.homes["a.com"]
    await asyncio.sleep(0.1)

    assert not older.good
    assert frontier.withdrawn_homes == ["a.com"]
    assert frontier.homes["a.com"].good


async def test_a_home_of_the_gate_with_a_turn_open_is_not_shed() -> None:
    starving = False
    process = Process(lambda r: gives(r) | {"starving": starving, "fair": 0})
    home = await process.session.take("a.com")
    process.session.entered(home)

    starving = True
    await asyncio.sleep(3.0)

    assert process.session.held("a.com") is home


async def test_news_make_a_home_of_the_gate_one_of_the_frontier() -> None:
    news: list[object] = []
    process = Process(lambda r: gives(r) | {"news": news})
    frontier = process.crawl()
    home = await process.session.take("a.com")

    news.append(["a.com", "https://a.com", [["d", 1, 0, "[]"]]])
    await asyncio.sleep(1.1)

    assert home.used
    assert frontier.told[0] == ("a.com", "https://a.com")


async def test_a_lost_session_withdraws_all_homes_and_begins_anew() -> None:
    lost = False
    process = Process(lambda r: {"lost": True} if lost else gives(r))
    frontier = process.crawl()
    home = await process.session.take("a.com")
    home.used = True
    frontier.homes["a.com"] = home

    lost = True
    await asyncio.sleep(1.05)
    lost = False
    await asyncio.sleep(0.1)

    assert frontier.withdrawn_homes == ["a.com"]
    assert not home.good
    assert process.pacer.handed == []
    assert process.session.held("a.com") is None


async def test_an_emptied_store_fails_a_frontier_and_all_that_waits() -> None:
    emptied = False
    process = Process(lambda r: {"err": "emptied"} if emptied else {"picked": [[*fresh("a.com"), []]]})
    frontier = process.crawl(room=1)
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    waiting = asyncio.create_task(process.session.take("b.com"))
    await asyncio.sleep(0.0)

    emptied = True

    with pytest.raises(StoreEmptied):
        await waiting
    with pytest.raises(StoreEmptied):
        await process.session.take("c.com")
    assert not home.good
    assert [type(failure) for failure in frontier.failures] == [StoreEmptied]
    assert frontier.withdrawn_homes == ["a.com"]
    await process.session.close()


# Events


async def test_one_event_tells_that_the_store_is_away_and_one_that_it_is_back() -> None:
    process = Process(gives, partitions=3)
    process.session.begin()
    await asyncio.sleep(0.5)

    process.link.down = True
    await asyncio.sleep(1.4)
    assert process.events == []
    await asyncio.sleep(20.0)
    process.link.down = False
    await asyncio.sleep(2.0)

    away, back = process.events
    assert away == StoreAway("redis://example.com:6379/0", "connection refused")
    assert isinstance(back, StoreBack)
    assert back.away_s == pytest.approx(21.2, abs=1.2)


async def test_the_store_is_back_when_all_partitions_are() -> None:
    process = Process(gives, partitions=2)
    process.session.begin()
    await asyncio.sleep(0.5)

    process.link.down_for.add("polite:{news:1}:")
    await asyncio.sleep(20.0)
    assert [type(event) for event in process.events] == [StoreAway]
    process.link.down_for.clear()
    await asyncio.sleep(2.0)

    assert [type(event) for event in process.events] == [StoreAway, StoreBack]


async def test_an_outage_shorter_than_a_beat_is_no_event() -> None:
    process = Process(gives)
    process.session.begin()
    await asyncio.sleep(0.9)

    process.link.down = True
    await asyncio.sleep(0.8)
    process.link.down = False
    await asyncio.sleep(5.0)

    assert process.events == []


# The end of a crawl


def counts(**totals: int) -> Callable[[Request], Request]:
    return lambda request: {"waiting": 0, "quiet": 0, "nputs": 7, "all_closed": True} | totals


async def test_a_crawl_is_over_when_nothing_waits_in_two_readings() -> None:
    process = Process(counts(), partitions=3)

    assert await process.session.over() == Remaining(empty=True, all_closed=True)
    assert len(process.link.sent) == 6


@pytest.mark.parametrize("totals", [{"waiting": 1}, {"quiet": 1}])
async def test_it_is_not_over_while_something_waits_or_is_not_known(totals: dict[str, int]) -> None:
    assert not (await Process(counts(**totals)).session.over()).empty


async def test_it_is_not_over_when_something_was_put_between_the_readings() -> None:
    puts = count()
    process = Process(lambda r: {"nputs": next(puts)})

    assert not (await process.session.over()).empty


async def test_a_lost_session_has_not_read_that_it_is_over() -> None:
    process = Process(lambda r: counts()(r) | {"lost": not r["first"]})
    process.session.begin()
    await asyncio.sleep(0.1)

    assert not (await process.session.over()).empty


async def test_nothing_waits_but_others_may_put() -> None:
    assert await Process(counts(all_closed=0)).session.over() == Remaining(empty=True, all_closed=False)


async def test_the_end_of_puts_is_told() -> None:
    process = Process(gives)
    process.session.begin()
    await asyncio.sleep(0.1)

    process.session.close_puts()
    await asyncio.sleep(0.1)

    assert [r["closed"] for r in process.link.sent] == [False, True]


# Closing


async def test_closing_leaves_homes_without_a_turn_and_names_no_other() -> None:
    process = Process(gives)
    process.pacer.rest_s = 2.0
    await process.session.take("a.com")
    home = await process.session.take("b.com")
    process.session.entered(home)

    await process.session.close()

    last = process.link.sent[-1]
    assert last["bye"]
    assert [(leave[0], leave[2]) for leave in last["leaves"]] == [("a.com", 2_000_000)]
    assert not home.good
    process.session.left(home)
    assert process.pacer.handed == ["a.com"]


async def test_closing_fails_those_that_wait() -> None:
    process = Process(lambda r: {})
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(0.1)

    await process.session.close()

    with pytest.raises(GateClosed):
        await waiting
    with pytest.raises(GateClosed):
        await process.session.take("b.com")


async def test_closing_fails_them_at_once_though_the_store_is_away() -> None:
    process = Process(gives)
    process.link.down = True
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(0.1)

    closing = asyncio.create_task(process.session.close())
    await asyncio.sleep(0.01)

    assert isinstance(waiting.exception(), GateClosed)
    await closing


async def test_a_home_that_comes_while_it_closes_is_not_used() -> None:
    process = Process(gives)
    process.link.delay_s = 0.1
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(0.05)

    await process.session.close()

    assert process.pacer.taken == []
    assert isinstance(waiting.exception(), GateClosed)


async def test_closing_ends_after_5_s_though_the_store_is_away() -> None:
    process = Process(gives, partitions=4)
    process.session.begin()
    await process.session.take("a.com")
    process.link.down = True
    await asyncio.sleep(3.0)

    started = process.clock.monotonic()
    await process.session.close()
    await process.session.close()

    assert process.clock.monotonic() - started == pytest.approx(5.0)


async def test_closing_is_finished_before_a_cancellation_is_raised() -> None:
    process = Process(gives)
    await process.session.take("a.com")
    process.link.delay_s = 1.0

    closing = asyncio.create_task(process.session.close())
    await asyncio.sleep(0.5)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert process.link.sent[-1]["bye"]
    assert process.clock.monotonic() > 1.0


# Many processes


@pytest.mark.parametrize("seed", range(40))
async def test_two_processes_never_hold_a_home_at_once_and_all_get_it(seed: int) -> None:
    """Gates that all want the same homes, over a network that delays and loses, on machines that are suspended."""
    weather = random.Random(seed)
    server = HomesServer()
    processes = [Process(server.answer) for _ in range(3)]
    names = ["a.com", "b.com"]
    turns = 0

    def check() -> None:
        for name in names:
            good = [process for process in processes if (held := holds.get((process, name))) and held.good]
            assert len(good) <= 1

    holds: dict[tuple[Process, str], Home] = {}

    async def use(process: Process) -> None:
        nonlocal turns
        for _ in range(15):
            name = weather.choice(names)
            home = await process.session.take(name)
            if process.session.held(name) is not home:
                continue
            process.session.entered(home)
            holds[process, name] = home
            check()
            await asyncio.sleep(weather.expovariate(2.0))
            check()
            process.session.left(home)
            turns += 1
            if weather.random() < 0.1:
                process.clock.suspend(weather.choice([1.0, 7.0]))
            late, lost = weather.expovariate(8.0), weather.random()
            process.link.faults.append(Fault(late, late, request_lost=lost < 0.2, reply_lost=lost > 0.8))

    async with asyncio.timeout(600.0):
        await asyncio.gather(*(use(process) for process in processes))
        for process in processes:
            await process.session.close()

    assert turns > 30
    assert all(row.owner is None for row in server.homes.values() if math.isfinite(row.fence))
