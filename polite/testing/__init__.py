"""Tools for tests of crawlers: clocks, virtual time, scripted servers, contracts.

Theory of operation. Time is either moved by the test (`ManualClock`) or jumps to the next timer as soon as nothing
else can happen (`VirtualTimeLoop` with `LoopClock`), so a crawl of a day takes as long as its computations. A loop
on which nothing can ever happen raises `Deadlock` and names the tasks that wait.

Responses come from a `ScriptedTransport` (no network), or octet by octet from a `scripted_server` on loopback.
`SCHEDULER_CONTRACT` and `STORE_CONTRACT` hold the checks that a scheduler or a store of your own must pass.
"""

from polite.robots.exchange import Ask, Failed, Reply
from polite.testing.clock import LoopClock, ManualClock
from polite.testing.contracts import SCHEDULER_CONTRACT, STORE_CONTRACT
from polite.testing.loop import Deadlock, VirtualTimeLoop
from polite.testing.transport import ScriptedServer, ScriptedTransport, scripted_server

__all__ = [
    "SCHEDULER_CONTRACT", "STORE_CONTRACT", "Ask", "Deadlock", "Failed", "LoopClock", "ManualClock", "Reply",
    "ScriptedServer", "ScriptedTransport", "VirtualTimeLoop", "scripted_server",
]  # fmt: skip
