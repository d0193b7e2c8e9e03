"""The gate's listener: records each event with judge, progress, ledgers and trace."""

from polite.events import Dropped, Event, Granted, OriginPostponed, Reclaimed, Refused, Skipped
from tests.simulation.loop import SimulationLoop
from tests.simulation.parts import Parts
from tests.simulation.plan import origin_of


class GateEvents:
    """A listener for the gate's events. It passes them on to a user's listener first."""

    def __init__(self, parts: Parts, loop: SimulationLoop) -> None:
        self._parts = parts
        self._trace = parts.trace
        self._loop = loop

    def __call__(self, event: Event, /) -> None:
        """See ports.Listener."""
        if self._parts.sites.ended:
            return
        self._call_users_listener(event)
        match event:
            case Refused(url=url):
                self._refused(url, event.reason)
            case Dropped(url=url):
                self._trace.note("dropped", url, event.because)
                self._task_ended(url, "dropped")
                self._parts.progress.refused(origin_of(url))
            case Granted(url=url):
                self._parts.visitor.turns[url] = self._loop.time()
                self._parts.visitor.granted += 1
                self._parts.judge.turn_granted(url)
                self._trace.note("turn", url, f"after {event.waited_s:.3f} s")
            case Skipped(url=url):
                self._parts.judge.turn_unused(url)
                self._trace.note("skipped", url, event.because)
            case Reclaimed(url=url):
                self._trace.note("reclaimed", url)
                self._parts.judge.turn_reclaimed(url)
            case OriginPostponed():
                self._trace.note("postponed", event.origin, f"{event.for_s:.3f} s", event.because)
                self._parts.progress.refused(event.origin)
            case _:
                self._trace.note(type(event).__name__.lower(), event)

    def _call_users_listener(self, event: Event) -> None:
        listener = self._parts.options.listener
        if listener is None:
            return
        try:
            listener(event)
        except Exception as error:
            self._trace.fail("the listener under test does not fail", f"{error!r} at {event}")

    def _refused(self, url: str, reason: str) -> None:
        self._trace.note("refused", url, reason)
        self._task_ended(url, "refused")
        self._parts.progress.refused(origin_of(url))
        self._parts.judge.refused(url, reason)

    def _task_ended(self, url: str, how: str) -> None:
        if (ledger := self._parts.ledger_of(url)) is not None:
            ledger.ended(url, how)
