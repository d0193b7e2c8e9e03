"""step.lua does as much as it was given, however large the crawl is."""

from collections.abc import Callable

import pytest

from polite.stores.redis.step import Hold, Leave, Load, Lookup, Mine, Out, Postpone, Requeued, StepReply
from tests.many.stepping import LEASE, SECOND, Crawl, Process, digest, ended, put

HOST = "https://a.example"
A, B = f"{HOST}/a", f"{HOST}/b"

# Homes in line with a task; homes that another process holds, with news and wishes; rows, times and met URLs of further ones.
FILL = """
local call, P, count, now = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local function at(seconds) return string.format('%.0f', now + seconds * 1000000) end
for i = 1, count do
  local line, held, gone = 'line' .. i .. '.example', 'held' .. i .. '.example', 'gone' .. i .. '.example'
  call('ZADD', P .. 'l', at(i % 2 == 0 and -1000 or 5000), line)
  call('HSET', P .. 't:https://' .. line, 'aaaaaaaaaaaaaaaa', i .. ':0::["/"]')
  call('ZADD', P .. 'q:https://' .. line, i, 'aaaaaaaaaaaaaaaa')
  call('HSET', P .. 'h', held, 'other:1:1:1:1:', gone, ':1:1:1:1:')
  call('SADD', P .. 'held:other', held)
  call('SADD', P .. 'n:other', held .. '\\nhttps://' .. held)
  call('SADD', P .. 'w:other', held)
  call('ZADD', P .. 'later', at(5000), 't\\n' .. gone .. '\\nhttps://' .. gone .. '\\naaaaaaaaaaaaaaaa')
  call('ZADD', P .. 'forget', at(5000), gone)
  call('ZADD', P .. 'idle', i, 'https://' .. gone)
end
"""


class Meter:
    """Counts what a step does on the server."""

    def __init__(self, crawl: Crawl):
        self.client = crawl.client

    def calls(self, act: Callable[[], StepReply]) -> int:
        """How many commands it ran, those in the script included."""
        self.client.config_resetstat()
        reply = act()
        stats = self.client.info("commandstats")
        assert (reply.err, reply.lost) == (None, False)
        return sum(each["calls"] for each in stats.values())

    def micros(self, act: Callable[[], StepReply]) -> float:
        self.client.config_resetstat()
        act()
        return float(self.client.info("commandstats")["cmdstat_eval"]["usec"])


def a_days_work(one: Process) -> dict[str, Callable[[], StepReply]]:
    def step(**given: object) -> Callable[[], StepReply]:
        return lambda: one.step(check=False, **given)

    fence = one.fences["a.example"]
    task = (HOST, digest(B))
    return {
        "nothing": step(),
        "puts": step(
            puts=[put(A), put("https://new.example/"), put("https://soon.example/", ready_in=SECOND)]
        ),
        "met": step(met=[Lookup("a.example", *task, False)]),
        "out": step(outs=[Out("a.example", fence, *task)]),
        "requeued": step(requeued=[Requeued("a.example", *task, 1, SECOND)]),
        "ended": step(ended=[ended(A), ended("https://never.example/")]),
        "hold": step(holds=[Hold("a.example", fence, SECOND, None)]),
        "postpone": step(postpones=[Postpone("a.example", fence, HOST, SECOND)]),
        "load": step(loads=[Load("a.example", fence, HOST, 32)]),
        "mine": step(mine=[Mine("a.example", fence)]),
        "take": step(takes=["held1.example", "gone1.example"]),
        "leave": step(leaves=[Leave("a.example", fence, SECOND, "{}")]),
        "pick": step(room=5),
        "forgetting": step(ended=[ended(B)], max_done=1),
        "goodbye": step(bye=True),
    }


def works(crawl: Crawl, homes: int) -> tuple[dict[str, int], float]:
    """Return the commands of each kind of step, and the fastest empty step's time in microseconds."""
    crawl.client.flushall()
    one, other = crawl.process("one"), crawl.process("other")
    other.step(lease=60 * LEASE)
    one.put(A, B)
    one.step(takes=["a.example"])
    crawl.client.eval(FILL, 1, crawl.prefix, homes, crawl.now())
    meter = Meter(crawl)
    empty = min(meter.micros(lambda: one.step(check=False)) for _ in range(50))
    return {name: meter.calls(act) for name, act in a_days_work(one).items()}, empty


def test_a_step_runs_the_same_commands_in_a_crawl_of_a_hundred_times_the_homes(crawl: Crawl) -> None:
    small, empty_small = works(crawl, 1_000)
    large, empty_large = works(crawl, 100_000)

    assert large == small
    # A command that reads everything takes a hundred times as long.
    assert empty_large < 5 * empty_small


@pytest.mark.parametrize("entries", [1, 200])
def test_a_put_and_an_end_run_a_fixed_number_of_commands(crawl: Crawl, entries: int) -> None:
    one = crawl.process("one")
    meter = Meter(crawl)
    empty = max(meter.calls(one.step) for _ in range(2))
    urls = [f"https://{number}.example/" for number in range(entries)]

    puts = meter.calls(lambda: one.step(check=False, puts=[put(url) for url in urls]))
    ends = meter.calls(lambda: one.step(check=False, ended=[ended(url) for url in urls]))

    assert puts - empty <= 12 * entries + 5
    assert ends - empty <= 14 * entries + 5


def test_ending_a_session_with_many_homes_is_shared_among_calls(crawl: Crawl) -> None:
    dead, one = crawl.process("dead"), crawl.process("one")
    homes = [f"{number}.example" for number in range(600)]
    for start in range(0, 600, 200):
        dead.step(check=False, takes=homes[start : start + 200])
    one.step()
    crawl.expire(dead)

    first = Meter(crawl).calls(one.step)

    assert first < 125 * 10
    assert crawl.client.scard(crawl.key("held:dead")) == 475


def test_a_full_batch_does_little_besides(crawl: Crawl) -> None:
    dead, one = crawl.process("dead"), crawl.process("one")
    homes = [f"{number}.example" for number in range(120)]
    dead.step(takes=homes)
    one.step()
    crawl.expire(dead)
    puts = [put(f"https://x{number}.example/") for number in range(200)]

    one.step(check=False, puts=puts, ended=[ended(f"https://y{number}.example/") for number in range(200)])

    assert 100 <= crawl.client.scard(crawl.key("held:dead")) < 120
    assert one.step().next_in is None
