"""For tests of crawlers: clocks that a test moves, an event loop in virtual time, transports and servers that do as told."""

from polite.testing.clock import LoopClock, ManualClock
from polite.testing.loop import Deadlock, VirtualTimeLoop
from polite.testing.lying import LyingServer, lying_server
from polite.testing.transport import ScriptedTransport

__all__ = [
    "Deadlock",
    "LoopClock",
    "LyingServer",
    "ManualClock",
    "ScriptedTransport",
    "VirtualTimeLoop",
    "lying_server",
]
