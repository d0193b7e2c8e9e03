"""1,000,000 origins: an answer costs the same as with few, and a walk holds the event loop for milliseconds at a time."""

import json
from time import thread_time
from typing import Any

import pytest

from polite.status.survey import _SLICE_S
from polite.testing import ScriptedTransport
from tests.status.support import watched

pytestmark = pytest.mark.virtual_time

ORIGINS, MADE = 1_000_000, 1_000


@pytest.mark.slow("a million origins")
async def test_a_million_origins_answer_within_100_ms_and_never_stall_the_loop() -> None:
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport) as crawl:
        await crawl.frontier.put_many([f"https://h{n}.test/" for n in range(MADE)])
        survey: Any = crawl.monitor._survey
        ring = survey._ring._ring
        # Each of the queues a thousand times: a walk visits a million, which would take a gigabyte.
        ring.extend(list(ring) * (ORIGINS // MADE - 1))
        crawl.monitor.want()
        steps = longest_s = 0.0
        began = thread_time()
        answers = [crawl.monitor.state(), crawl.monitor.origins(reason=None, containing="h9", limit=300)]
        answered_s = thread_time() - began
        while survey.last is None:
            began = thread_time()
            survey._step()
            longest_s, steps = max(longest_s, thread_time() - began), steps + 1
        began = thread_time()
        answers += [
            crawl.monitor.state(),
            crawl.monitor.origins(reason=None, containing="https://h9.test/", limit=300),
            await crawl.monitor.urls.of("https://h9.test/x"),
            crawl.monitor.timeline(),
        ]
        sizes = [len(json.dumps(each)) for each in answers]
        answered_s = max(answered_s, thread_time() - began)

    assert survey.last.visited == ORIGINS
    assert steps > 50
    # Far below what it may be; a slice ends at the first look at the clock after 2 ms.
    assert longest_s < 10 * _SLICE_S
    assert answered_s < 0.1
    assert max(sizes) < 100_000
