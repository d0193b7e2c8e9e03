"""A partition whose batches get no reply."""

import asyncio
import itertools

import pytest

from polite.errors import StoreFailed
from polite.stores.redis.changes import Changes
from tests.stores.redis.partitions import Owner, hold, on, submit
from tests.stores.redis.scripted_link import Fault, ScriptedLink, digests, put

pytestmark = pytest.mark.virtual_time


async def test_changes_without_a_reply_go_again_with_a_new_seq_and_what_is_held() -> None:
    link = ScriptedLink()
    link.faults.extend([Fault(), Fault(request_lost=True), Fault(reply_lost=True)])
    partition = on(link)
    await submit(partition)
    hold(partition, "example.com", fence=9)

    await submit(partition, puts=[put(1)])

    assert [r["seq"] for r in link.sent] == [1, 2, 3, 4]
    assert [digests(r["puts"]) for r in link.sent[1:]] == [[1], [1], [1]]
    assert [r.get("mine") for r in link.sent] == [None, None, [["example.com", 9]], [["example.com", 9]]]


async def test_attempts_are_50_ms_to_1_s_apart() -> None:
    link = ScriptedLink()
    link.down = True
    partition = on(link)

    partition.stir(0.0)
    await asyncio.sleep(4.5)

    times = [when for when, _ in link.requests]
    gaps = [later - earlier - 0.01 for earlier, later in itertools.pairwise(times)]
    assert gaps == [pytest.approx(gap, abs=0.002) for gap in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)]


async def test_a_batch_that_the_server_calls_old_goes_again() -> None:
    link = ScriptedLink(lambda request: {"err": "old"} if request["seq"] < 3 else {})

    reply = await submit(on(link), puts=[put(1)])

    assert reply.puts == [1]
    assert len(link.sent) == 3


async def test_a_call_that_was_cancelled_from_outside_goes_again() -> None:
    link = ScriptedLink(delay_s=1.0)
    partition = on(link)
    sent = partition.submit(Changes(puts=[put(1)]))
    await asyncio.sleep(0.5)

    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

    assert (await sent).puts == [1]
    assert len(link.sent) == 2


async def test_a_failure_that_no_waiting_helps_fails_what_waits() -> None:
    class Refusing(ScriptedLink):
        async def step(self, prefix: str, request: str) -> str:
            raise StoreFailed("NOAUTH: name a password")

    owner = Owner()
    partition = on(Refusing(), owner)

    with pytest.raises(StoreFailed, match="NOAUTH"):
        await submit(partition, puts=[put(1)])
    with pytest.raises(StoreFailed, match="NOAUTH"):
        await submit(partition, puts=[put(2)])
    assert len(owner.failures) == 1
