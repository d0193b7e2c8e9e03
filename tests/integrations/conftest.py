"""A clock whose waits take no time, a site in a thread, and a gate for threads."""

import pytest

import polite
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, PACING, served_in_a_thread


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def site(clock):
    with served_in_a_thread(lambda: clock.now) as site:
        site.wall = clock.wall
        yield site


@pytest.fixture
def gate(clock):
    with polite.blocking.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=clock) as gate:
        yield gate
