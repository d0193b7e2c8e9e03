"""For tests of crawlers: clocks that a test moves, an event loop in virtual time, servers that do as told, simulated crawls."""

from polite.testing.clock import LoopClock, ManualClock
from polite.testing.loop import Deadlock, VirtualTimeLoop
from polite.testing.scripted_server import ScriptedServer, scripted_server
from polite.testing.simulation import Page, PageFailed, Report, Simulation, SimulationFailed, Sites
from polite.testing.transport import ScriptedTransport

__all__ = [
    "Deadlock",
    "LoopClock",
    "ManualClock",
    "Page",
    "PageFailed",
    "Report",
    "ScriptedServer",
    "ScriptedTransport",
    "Simulation",
    "SimulationFailed",
    "Sites",
    "VirtualTimeLoop",
    "scripted_server",
]
