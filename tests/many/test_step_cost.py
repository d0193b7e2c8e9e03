"""step.lua does as much as it was given, however large the crawl is."""

from collections.abc import Callable

import pytest

from polite.stores.redis.changes import Out
from polite.stores.redis.step import StepReply
from tests.many.stepping import Crawl, digest, ended, put

HOST = "https://a.example"


class Meter:
    def __init__(self, crawl: Crawl):
        self.client = crawl.client

    def calls(self, act: Callable[[], StepReply]) -> int:
        """How many commands it ran, those in the script included."""
        self.client.config_resetstat()
        reply = act()
        stats = self.client.info("commandstats")
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


def meets(crawl: Crawl, step: Callable[[], StepReply]) -> int:
    """Repeat a step until nothing is left to do at once; return how many there were, none of them long."""
    meter = Meter(crawl)
    for count in range(1, 200):
        replies: list[StepReply] = []

        def one_more(replies: list[StepReply] = replies) -> StepReply:
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

    def step() -> StepReply:
        reply = one.step(check=False)
        given_up.extend(row.digest for _, row in reply.given_up)
        return reply

    assert meets(crawl, step) > 5
    assert sorted(given_up) == sorted(map(digest, urls))
    assert one.step().dropped == 1_000
    assert crawl.client.hkeys(crawl.key("s")) == ["one"]
