"""A thread that works in batches: in order, all that was asked for, and each answer to the loop that asked."""

import asyncio
import threading

import pytest

from polite.stores.batch_worker import BatchWorker


class Batches:
    """Doubles numbers; the first batch waits until it is let go."""

    def __init__(self):
        self.done = []
        self.go = threading.Event()
        self.ended = 0
        self.worker = BatchWorker("doubling", self.serve, self.end)

    def serve(self, jobs):
        self.go.wait(10)
        self.done.append(list(jobs))
        return [ValueError(job) if job < 0 else 2 * job for job in jobs]

    def end(self):
        self.ended += 1


async def test_what_comes_while_one_is_done_makes_the_next_batch():
    batches = Batches()

    first = batches.worker.submit(0)
    for _ in range(3):
        await asyncio.sleep(0)
    others = [batches.worker.submit(number) for number in range(1, 6)]
    batches.worker.post(6)
    batches.go.set()
    answers = await asyncio.gather(first, *others)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert answers == [0, 2, 4, 6, 8, 10]
    assert batches.done == [[0], [1, 2, 3, 4, 5, 6]]


async def test_a_batch_has_a_bound():
    batches = Batches()

    answers = [batches.worker.submit(number) for number in range(2_500)]
    batches.go.set()
    await asyncio.gather(*answers)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert max(map(len, batches.done)) == 1_000


async def test_an_answer_may_be_an_error_and_spoils_no_other():
    batches = Batches()
    batches.go.set()

    answers = await asyncio.gather(*map(batches.worker.submit, (1, -1, 2)), return_exceptions=True)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert answers[::2] == [2, 4]
    assert isinstance(answers[1], ValueError)


async def test_stopping_does_what_was_asked_for_and_ends_once():
    batches = Batches()
    answers = [batches.worker.submit(number) for number in range(10)]

    batches.go.set()
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert await asyncio.gather(*answers) == list(range(0, 20, 2))
    assert batches.ended == 1


async def test_each_loop_gets_its_own_answers():
    batches = Batches()
    batches.go.set()

    async def ask():
        return await asyncio.gather(*map(batches.worker.submit, range(50)))

    elsewhere = asyncio.to_thread(asyncio.run, ask())
    answers = await asyncio.gather(ask(), elsewhere)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert answers == [list(range(0, 100, 2))] * 2


async def test_a_loop_that_ended_meanwhile_does_not_disturb_others():
    batches = Batches()

    async def ask_and_leave():
        batches.worker.submit(1)

    await asyncio.to_thread(asyncio.run, ask_and_leave())
    batches.go.set()
    answer = await batches.worker.submit(2)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert answer == 4


async def test_a_cancelled_call_gets_no_result():
    batches = Batches()
    answer = batches.worker.submit(1)

    answer.cancel()
    batches.go.set()
    batches.worker.shut_down()
    await batches.worker.wait_closed()
    await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        answer.result()


async def test_what_is_asked_for_in_the_step_in_which_it_ends_is_served():
    batches = Batches()
    batches.go.set()
    await batches.worker.submit(0)

    answer = batches.worker.submit(1)
    batches.worker.post(2)
    batches.worker.shut_down()
    await batches.worker.wait_closed()

    assert await answer == 2
    assert batches.done == [[0], [1, 2]]


async def test_an_end_that_is_not_waited_for_leaves_no_thread():
    batches = Batches()
    answer = batches.worker.submit(1)

    batches.worker.shut_down()
    gone = asyncio.create_task(batches.worker.wait_closed())
    await asyncio.sleep(0)
    gone.cancel()
    batches.go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("doubling"):
            thread.join(10)

    assert not any(thread.name.startswith("doubling") for thread in threading.enumerate())
    assert await answer == 2
