"""What tests of gates for threads share: a gate of scripted servers, and threads that fetch."""

import subprocess
import threading
from collections.abc import Callable
from typing import Any

import polite
from polite.testing import ScriptedTransport
from tests.hasty_clock import HastyClock
from tests.support import run_python

AGENT = "TestBot/1.0 (+https://bot.test)"
ROBOTS, PAGE, OTHER = "https://site.test/robots.txt", "https://site.test/page", "https://other.test/page"
LIMIT_S = 300.0


def opened(transport: ScriptedTransport | None = None, **options: Any) -> polite.blocking.Gate:
    """Open a gate whose waits take no time, and whose servers follow a script. By default no site has a robots.txt."""
    transport = transport or ScriptedTransport()
    defaults: dict[str, Any] = {"clock": HastyClock(), "transports": {"http": transport, "https": transport}}
    return polite.blocking.open_gate(AGENT, **{**defaults, **options})


class Thread(threading.Thread):
    """A thread whose result or error the test gets from `outcome`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error

    def outcome(self) -> Any:
        self.join(LIMIT_S)
        assert not self.is_alive(), "the thread hangs"
        if self._error is not None:
            raise self._error
        return self._result


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    # A shell's background jobs ignore Ctrl-C, and so do the processes that they start.
    head = "from tests.blocking.support import *\nimport signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return run_python(head + script, timeout=LIMIT_S)
