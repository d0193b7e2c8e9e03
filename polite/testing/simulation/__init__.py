"""Deterministic simulation of a whole crawl: one seed is one world, in virtual time, in one process, exactly repeatable.

A Plan is drawn from the seed: sites, policies, frontiers, and steps at their times. A Life is one process: it opens a gate and
frontiers over the simulated Sites, takes the steps, and closes all, or is killed; the next Life opens the files it left. The
loop has no threads: what runs in one takes a drawn time, so that it overlaps with everything else. The Judge stands at the
servers and checks what they see; Progress computes by when whatever may go must have gone; a Ledger for each frontier holds
what was acknowledged. None of the three looks inside polite. The first violation stops the world, and the Trace tells it.
"""

from polite.testing.simulation.plan import Plan
from polite.testing.simulation.simulation import Simulation
from polite.testing.simulation.sites import Page, PageFailed, Sites
from polite.testing.simulation.world import Report, SimulationFailed

__all__ = ["Page", "PageFailed", "Plan", "Report", "Simulation", "SimulationFailed", "Sites"]
