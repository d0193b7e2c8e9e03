"""No test leaves this machine: sockets and DNS queries beyond loopback are refused, whoever opens them.

The environment variable POLITE_TEST_LOOP chooses the event loop (`./dev matrix` sets it): `eager` gives every loop
`asyncio.eager_task_factory` (Python 3.12 and later), `uvloop` runs tests in real time on uvloop.
"""

import asyncio
import gc
import os
import socket
import sys
from collections import defaultdict
from ipaddress import ip_address
from pathlib import Path
from random import Random
from shutil import disk_usage
from time import process_time

import aiodns
import pycares
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none

import polite
from polite.log import LINES
from polite.pacing import pacer
from polite.testing import VirtualTimeLoop
from tests import support
from tests.frameworks.installed import LEFT_OUT
from tests.project import loops

settings.register_profile(
    "polite", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("polite")

# It compares what a page prints: its failures show the difference, as those of a test file do.
pytest.register_assert_rewrite("tests.project.page_reader")

LOOP = os.environ.get("POLITE_TEST_LOOP", "")
if LOOP not in ("", "eager", "uvloop"):
    raise pytest.UsageError(f"POLITE_TEST_LOOP must be eager or uvloop, got {LOOP!r}")
# Their code has no event loop, so another loop changes nothing there.
_WITHOUT_A_LOOP = frozenset("pacing properties robots standards typing url".split())

_FAST_S = 5.0  # ten times what the slowest fast test takes on a usual machine (seconds of processor time)
# Thousands of tests write SQLite files, and would wait for the disk at each commit. What they write need not outlive the machine.
_MEMORY, _MEMORY_NEEDED = Path("/dev/shm"), 1 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Have `tmp_path` in memory, if there is enough of it."""
    support.FAST_ONLY = config.option.markexpr == "not slow"
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and disk_usage(_MEMORY).free > _MEMORY_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collections, each of which would visit millions of objects that stay."""
    # Hypothesis makes its random generator at its first test, and warns if none of the objects that are visited refers to it.
    given(none())(lambda _: None)()
    gc.collect()
    gc.freeze()


def pytest_asyncio_loop_factories(item):
    if _is_virtual(item):
        return {"virtual": VirtualTimeLoop}
    return {"real": asyncio.new_event_loop if LOOP == "uvloop" else asyncio.SelectorEventLoop}


@pytest.hookimpl(tryfirst=True)  # before pytest reads -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run slow tests first, skip what needs the sources in the compiled form, and leave out what the loop cannot change."""
    families: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow"):
            families[item.nodeid.partition("[")[0]].append(item)
    for family in families.values():
        _mark_slow_rows(family)
    items.sort(
        key=lambda item: item.get_closest_marker("slow") is None
    )  # long ones at the end would keep one core busy
    for item in items if polite.__compiled__ else ():
        if needed := item.get_closest_marker("pure"):
            item.add_marker(pytest.mark.skip(f"runs on the sources only: it {needed.args[0]}"))
    if LOOP:
        config.hook.pytest_deselected(items=[item for item in items if not _concerns_the_loop(item)])
        items[:] = [item for item in items if _concerns_the_loop(item)]


def pytest_terminal_summary(terminalreporter):
    """Say which frameworks' tests are left out."""
    if LEFT_OUT:
        terminalreporter.write_line(
            f"left out, since not installed here: {', '.join(LEFT_OUT)}; run ./dev frameworks"
        )


def _mark_slow_rows(family: list[pytest.Item]) -> None:
    """Take `slow` from the rows of a test that its mark leaves fast. Coverage is measured on tests without the mark only.

    `slow(reason, fast=n)` leaves n rows, drawn once for all; `slow(reason, rows=[...])` leaves those whose ids have none of
    these texts.
    """
    mark = family[0].get_closest_marker("slow")
    fast = Random(0).sample(range(len(family)), min(len(family), mark.kwargs.get("fast", 0)))
    for at, item in enumerate(family):
        item.add_marker("no_cover")
        if at in fast or not any(text in item.name for text in mark.kwargs.get("rows", [""])):
            item.own_markers.remove(mark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a fast test that became slow, by processor time, which a slow machine is granted more of."""
    started = process_time()
    result = yield
    took = process_time() - started
    # Tracing makes a test two to three times as slow.
    if took > _FAST_S and not item.get_closest_marker("slow") and not sys.gettrace():
        limit = _FAST_S * support.slowness()
        if took > limit:
            because = f"took {took:.1f} s of processor time, and {limit:.1f} are the most on this machine"
            pytest.fail(f"{because}: make it faster, or mark it slow (CONTRIBUTING.md)")
    return result


def _concerns_the_loop(item: pytest.Item) -> bool:
    if item.path.relative_to(Path(__file__).parent).parts[0] in _WITHOUT_A_LOOP:
        return False
    return LOOP != "uvloop" or not _is_virtual(item)


def _is_virtual(item: pytest.Item) -> bool:
    """Whether the test's loop has virtual time: all of these folders' do."""
    return (
        item.path.parent.name in {"gate", "frontier"} or item.get_closest_marker("virtual_time") is not None
    )


class LeftTheMachine(Exception):
    """A test tried to reach something beyond loopback. Not an OSError: nothing may take it for a network failure."""


def _require_loopback(address):
    """Unix sockets have no host; names may not be resolved behind our back; addresses must be loopback."""
    if not isinstance(address, tuple):
        return
    host = str(address[0]).partition("%")[0]
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local:
        raise LeftTheMachine(f"a test may not reach {address!r}")


if LOOP == "eager":
    loops.make_every_loop_eager()
if LOOP == "uvloop":
    loops.make_uvloop_the_default(_require_loopback)


@pytest.fixture(autouse=True)
def _lines_are_counted_anew() -> None:
    """Else a test would miss lines of which other tests have caused ten within the last minute."""
    LINES.forget()


@pytest.fixture(autouse=True)
def _no_site_is_delayed() -> None:
    """Gates leave their delays to later ones of the process. The site of an earlier test may be in back-off for a day, and the
    system gives its port to the server of another.
    """
    pacer._forget_all()


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    real_socket = socket.socket

    class LoopbackSocket(real_socket):  # type: ignore[misc, valid-type]
        def connect(self, address):
            _require_loopback(address)
            super().connect(address)

        def connect_ex(self, address):
            _require_loopback(address)
            return super().connect_ex(address)

        def sendto(self, data, *args):
            _require_loopback(args[-1])
            return super().sendto(data, *args)

        def bind(self, address):
            _require_loopback(address)
            super().bind(address)

    real_getaddrinfo = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        _require_loopback((host,))
        return real_getaddrinfo(host, *args, **kwargs)

    real_resolver, real_servers = aiodns.DNSResolver.__init__, pycares.Channel.servers

    def resolver(self, nameservers=None, *args, **kwargs):
        if not nameservers:
            raise LeftTheMachine("a test may not ask the system's nameservers: name one on loopback")
        for server in nameservers:
            _require_loopback((server.rpartition(":")[0].strip("[]") or server,))
        real_resolver(self, nameservers, *args, **kwargs)

    def set_servers(self, servers):
        for server in servers:
            _require_loopback((server.rpartition(":")[0].strip("[]") or server,))
        real_servers.__set__(self, servers)

    monkeypatch.setattr(socket, "socket", LoopbackSocket)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(aiodns.DNSResolver, "__init__", resolver)
    monkeypatch.setattr(pycares.Channel, "servers", property(real_servers.__get__, set_servers))
