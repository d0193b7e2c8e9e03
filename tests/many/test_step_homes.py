"""step.lua, steps 8 to 11: homes that are left, claimed, held for long, and wanted; and it does no more than it was given."""

import pytest

from polite.stores.redis.changes import Hold, Leave, Mine, Out
from tests.many.stepping import LEASE, SECOND, Crawl, Process, digest, ended, put

HOST = "https://a.example"
A = f"{HOST}/a"
DAY = 86_400 * SECOND


def owner_of(crawl: Crawl, home: str = "a.example") -> str | None:
    row = crawl.client.hget(crawl.key("h"), home)
    return row.split(":")[0] or None if row else None


def leave(process: Process, *, rest: int = 0, state: str | None = None, fence: int | None = None) -> None:
    given = process.fences["a.example"] if fence is None else fence
    process.step(leaves=[Leave("a.example", given, rest, state)])


def take(process):
    taken = process.take("a.example")
    assert taken is not None
    return taken


def test_a_home_that_was_left_has_what_is_left_of_its_rest_and_its_state(crawl, one, other):
    take(one)

    leave(one, rest=5 * SECOND, state='{"a:b": [1]}')
    crawl.age(2 * SECOND)
    taken = take(other)

    assert taken.clean
    assert taken.state == '{"a:b": [1]}'
    assert 2 * SECOND <= (taken.age or 0) < 3 * SECOND
    assert 2 * SECOND < taken.free <= 3 * SECOND


def test_a_home_with_tasks_waits_in_line_until_its_rest_is_over(crawl: Crawl, one: Process, other: Process):
    one.put(A)
    one.pick()
    leave(one, rest=9 * SECOND)

    reply = other.step(room=9)

    assert (reply.picked, reply.inline) == ([], 0)
    # It can be picked a second before: its new owner waits.
    assert 7 * SECOND < (reply.next_in or 0) <= 8 * SECOND
    crawl.age(8 * SECOND)
    [(taken, _)] = other.step(room=9).picked
    assert 0 < taken.free <= SECOND


def test_a_home_is_left_under_its_own_fence_and_by_its_owner_only(crawl: Crawl, one: Process, other: Process):
    stale = take(one).fence
    leave(one)
    fence = take(other).fence
    leave(one, fence=stale)
    leave(one, fence=fence)
    assert owner_of(crawl) == "other"


def test_a_greater_fence_leaves_a_home_that_a_lost_write_gave(crawl: Crawl, one: Process, other: Process):
    leave(other, fence=take(one).fence + 5, rest=SECOND)
    assert owner_of(crawl) is None
    assert take(one).fence >= 1
    assert not crawl.client.exists(crawl.key("held:other"))


@pytest.mark.parametrize("again", [False, True])
def test_a_home_without_tasks_is_forgotten_when_it_has_rested_unless_it_was_taken_again(crawl, again, one):
    take(one)
    leave(one, rest=3 * SECOND)
    assert crawl.client.hexists(crawl.key("h"), "a.example")
    if again:
        take(one)

    crawl.age(3 * SECOND)
    one.step()

    assert owner_of(crawl) == ("one" if again else None)
    assert again or not crawl.client.exists(crawl.key("h"), crawl.key("forget"))


@pytest.mark.parametrize("why", ["state", "death"])
def test_what_the_next_owner_must_know_is_kept_for_a_day(crawl, why: str, one, other):
    take(one)
    if why == "state":
        leave(one, state="{}")
    else:
        crawl.expire(one)
        other.step()

    crawl.age(DAY - 60 * SECOND)
    other.step(first=True)
    assert crawl.client.hexists(crawl.key("h"), "a.example")
    crawl.age(60 * SECOND)
    other.step(first=True)
    assert not crawl.client.hexists(crawl.key("h"), "a.example")


def test_a_long_rest_is_written_through(crawl: Crawl, one: Process, other: Process) -> None:
    fence = take(one).fence
    one.step(holds=[Hold("a.example", fence, 600 * SECOND, "{1}")])
    one.step(holds=[Hold("a.example", fence, 6 * SECOND, None)])
    crawl.expire(one)

    other.step()
    taken = take(other)

    assert taken.state == "{1}"
    assert 590 * SECOND < taken.free <= 600 * SECOND


def test_a_rest_counts_whoever_owns_the_home_and_a_state_only_of_the_owner(crawl, one, other):
    fence = take(one).fence

    other.step(holds=[Hold("a.example", fence, 600 * SECOND, "{1}")])
    other.step(holds=[Hold("never.example", fence, 600 * SECOND, "{1}")])

    leave(one)
    taken = take(other)
    assert taken.free > 590 * SECOND
    assert taken.state is None
    assert not crawl.client.hexists(crawl.key("h"), "never.example")


def test_a_home_of_mine_that_the_store_does_not_know_becomes_ours(crawl: Crawl, one: Process, other: Process):
    one.put(A)
    crawl.another_server()
    assert one.step(mine=[Mine("a.example", 7)]).gone == []
    assert owner_of(crawl) == "one"
    crawl.age(LEASE)
    one.step()
    assert other.step(room=9).picked == []


def test_the_greater_fence_of_mine_wins_over_an_older_one(crawl: Crawl, one: Process, other: Process) -> None:
    fence = take(one).fence
    assert other.step(mine=[Mine("a.example", fence + 1)]).gone == []
    assert owner_of(crawl) == "other"
    assert one.step(mine=[Mine("a.example", fence)]).gone == ["a.example"]


@pytest.mark.parametrize("older", [0, 1])
def test_a_home_of_mine_that_another_took_is_gone(crawl: Crawl, older: int, one: Process, other: Process):
    assert one.step(mine=[Mine("a.example", take(other).fence - older)]).gone == ["a.example"]
    assert owner_of(crawl) == "other"


def test_a_home_that_we_do_not_know_to_hold_rests_from_the_end_of_quiet(crawl, one, other):
    one.put(A)
    one.pick()
    crawl.another_server()
    one.step(mine=[])
    other.step()

    crawl.age(LEASE + SECOND)
    other.step(first=True, mine=[])
    [(taken, _)] = other.step(room=9).picked

    assert not taken.clean
    assert taken.age is not None
    assert SECOND <= taken.age < 2 * SECOND


def test_the_owner_of_a_wanted_home_is_asked_once_for_each_wish(one: Process, other: Process) -> None:
    take(one)
    assert other.take("a.example") is None
    assert other.take("a.example") is None
    assert one.step().recalls == ["a.example"]
    assert one.step().recalls == []
    leave(one)
    assert other.take("a.example") is not None


def test_a_home_that_the_last_server_may_have_given_to_another_is_not_taken_again_while_quiet(crawl, one):
    take(one)
    crawl.another_server()
    assert one.take("a.example") is None
    crawl.age(LEASE)
    assert one.take("a.example") is not None


class Meter:
    def __init__(self, crawl: Crawl):
        self.client = crawl.client

    def calls(self, act):
        self.client.config_resetstat()
        reply, stats = act(), self.client.info("commandstats")
        assert (reply.err, reply.lost) == (None, False)
        return sum(each["calls"] for each in stats.values())


# What these read grows with what is stored, and all others with their arguments alone. `s`, `closed`, `alone` and `roomless` have
# at most as many entries as there are processes, and `told` as many as one reply.
@pytest.mark.parametrize("entries", [1, 100])
@pytest.mark.parametrize(
    ("page", "of_a_put", "of_an_end"), [("https://{}.example/", 6, 8), (HOST + "/{}", 1, 2)]
)
def test_a_put_and_an_end_run_a_fixed_number_of_commands(crawl, entries, page, of_a_put, of_an_end, one):
    """Of one origin they have most in common."""
    meter = Meter(crawl)
    empty = max(meter.calls(lambda: one.step(check=False)) for _ in range(2))
    urls = [page.format(number) for number in range(entries)]

    puts = meter.calls(lambda: one.step(check=False, puts=[put(url) for url in urls]))
    ends = meter.calls(lambda: one.step(check=False, ended=[ended(url) for url in urls]))

    assert puts - empty <= of_a_put * entries + 8
    assert ends - empty <= of_an_end * entries + 8


# One call may run so many commands, whatever waits to be done. Each takes 1 to 3 us, with what Lua does about it.
MOST_COMMANDS = 700


def meets(crawl, step):
    """Repeat a step until nothing is left to do at once; return how many there were, none of them long."""
    meter = Meter(crawl)
    for count in range(1, 200):
        replies = []

        def one_more(replies=replies):
            replies.append(step())
            return replies[0]

        assert meter.calls(one_more) <= MOST_COMMANDS
        if replies[0].next_in != 0 and not replies[0].picked:
            return count
    raise AssertionError("it never ends")


def test_ending_a_session_with_many_tasks_in_one_home_is_shared_among_calls(crawl: Crawl) -> None:
    dead, one = crawl.process("dead", max_tries=1), crawl.process("one", max_tries=1)
    taken = dead.take("a.example")
    urls = [f"{HOST}/{number}" for number in range(1_000)]
    for start in range(0, 1_000, 100):
        page = urls[start : start + 100]
        outs = [Out("a.example", taken.fence if taken else 0, HOST, digest(url)) for url in page]
        dead.step(check=False, puts=[put(url) for url in page], outs=outs)
    one.step()
    crawl.expire(dead)

    given_up = []

    def step():
        reply = one.step(check=False)
        given_up.extend(row.digest for _, row in reply.given_up)
        return reply

    assert meets(crawl, step) > 5
    assert sorted(given_up) == sorted(map(digest, urls))
    assert one.step().dropped == 1_000
    assert crawl.client.hkeys(crawl.key("s")) == ["one"]
