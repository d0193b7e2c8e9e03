"""The gate for threads: its calls wait in the calling thread."""

import inspect
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from polite.blocking.loop_thread import LoopThread, refuse_in_a_loop
from polite.blocking.permit import Permit
from polite.compose import gate as compose
from polite.gate.explanation import Explanation
from polite.gate.tally import Counters
from polite.origin import Target
from polite.pacing.policy import PacingPolicy
from polite.ports import Listener, Meter
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.parse import Robots
from polite.terms.tdm import TdmFile

P = ParamSpec("P")
T = TypeVar("T")


class Gate:
    """A gate for threads, made by `polite.blocking.open_gate`. Any number of threads may share it.

    Its methods wait in the calling thread. They raise what those of `polite.Gate` raise, GateClosed in a fork of the process,
    and RuntimeError in a thread that runs an event loop.

    Example:
        with polite.blocking.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            with gate.permit("https://example.com/about") as permit:
                ...  # fetch permit.url, and report the response
    """

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._closed = False

    def check(self, url: str) -> Decision:
        """Return whether robots.txt allows the URL. Fetches robots.txt if necessary; takes no turn for the URL."""
        return self._thread.call(Target.of(url).url, lambda: self._thread.gate.check(url))

    def permit(self, url: str) -> Permit:
        """Return a permit. `with gate.permit(url) as permit:` waits for the turn; fetch `permit.url` inside, and report.

        An interrupted wait, such as by Ctrl-C, loses nothing. Raises InvalidURL at once, and the rest on entering.
        """
        return Permit(self._thread, Target.of(url))

    def acquire(self, url: str) -> Permit:
        """Wait for a permit of a URL, bound to no thread. End it with `permit.leave()`. Raises what entering a permit raises."""
        return self.permit(url).enter()

    def explain(self, url: str) -> Explanation:
        """Return everything that decides about the URL now: the rule, the file's age, the delay, the next turn."""
        return self._thread.call(Target.of(url).url, lambda: self._thread.gate.explain(url))

    def conditional(self, url: str) -> dict[str, str]:
        """Return the headers that request a URL only if its page has changed: as `polite.Gate.conditional`."""
        return self._thread.call(Target.of(url).url, lambda: self._thread.gate.conditional(url))

    def robots(self, url: str) -> Robots | None:
        """Return the robots.txt that decides about the URL's site: as `polite.Gate.robots`."""
        return self._thread.call(Target.of(url).url, lambda: self._thread.gate.robots(url))

    def tdm_file(self, url: str) -> TdmFile:
        """Fetch the TDM file of the URL's site: as `polite.Gate.tdm_file`."""
        return self._thread.call(Target.of(url).url, lambda: self._thread.gate.tdm_file(url))

    def charge(self, url: str) -> None:
        """Start the delay of a URL to which a request was sent without a permit. Counts no rules."""
        self._thread.run(Target.of(url).url, lambda: self._thread.gate.charge(url))

    @property
    def agent(self) -> UserAgent:
        """The crawler's user agent."""
        return self._thread.gate.agent

    @property
    def signs(self) -> bool:
        """Whether it has a signer: as `polite.Gate.signs`."""
        return self._thread.gate.signs

    @property
    def pacing(self) -> PacingPolicy:
        """The pacing policy in force. Assign another to change it."""
        return self._thread.gate.pacing

    @pacing.setter
    def pacing(self, policy: PacingPolicy) -> None:
        def assign() -> None:
            self._thread.gate.pacing = policy

        self._thread.run("the new pacing", assign)

    @property
    def counters(self) -> Counters:
        """A copy of the counts since the gate was opened."""
        return self._thread.gate.counters

    @property
    def waiting(self) -> int:
        """How many permits wait for rules or their turn now."""
        return self._thread.gate.waiting

    @property
    def inside(self) -> int:
        """How many permits are held now."""
        return self._thread.gate.inside

    @property
    def known_origins(self) -> int:
        """How many origins' rules are remembered now."""
        return self._thread.gate.known_origins

    @property
    def memory_used(self) -> int:
        """About how many octets the remembered rules and their files take."""
        return self._thread.gate.memory_used

    @property
    def queued(self) -> int:
        """Always 0: frontiers are for event loops."""
        return self._thread.gate.queued

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass events to one more listener, on the gate's own thread, until the returned function is called."""
        thread = self._thread
        end = thread.run("a listener", lambda: thread.gate.listen(listener))
        return lambda: thread.post(end)

    def measure(self, meter: Meter) -> Callable[[], None]:
        """Pass the times of each permit to a meter, on the gate's own thread, until the returned function is called."""
        thread = self._thread
        end = thread.run("a meter", lambda: thread.gate.measure(meter))
        return lambda: thread.post(end)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, on the gate's own thread, when the gate closes. What it raises is logged."""
        thread = self._thread
        thread.run("a callback", lambda: thread.gate.on_close(callback))

    def close(self) -> None:
        """Close the gate, and end its thread. Threads that wait get GateClosed. May be called twice.

        A permit that is still open may be reported and left, without effect.
        """
        refuse_in_a_loop("polite.blocking.Gate.close")
        self._thread.stop()
        if not self._closed:
            self._closed = True
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed and not self._thread.forked:
            warnings.warn(f"unclosed gate {self!r}", ResourceWarning, source=self, stacklevel=2)
            self._thread.stop()


def with_parameters_of(template: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Give a function the parameters of another one, for readers and type checkers."""

    def typed(function: Callable[..., T]) -> Callable[P, T]:
        own, parameters = inspect.signature(function), inspect.signature(template).parameters.values()
        function.__signature__ = own.replace(parameters=list(parameters))  # type: ignore[attr-defined]
        return function

    return typed


@with_parameters_of(compose.open_gate)
def open_gate(*args: object, **options: object) -> Gate:
    """Open a gate for threads. Its options are those of `polite.open_gate`.

    Example:
        with polite.blocking.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            print(gate.check("https://example.com/about"))

    Close it with a `with` block or with `close`. A listener, a store and other parts that you pass are called on the gate's own
    thread.

    Raises:
        RuntimeError: An event loop runs in this thread. Use `polite.open_gate` there.
        InvalidUserAgent, InvalidOption, StoreFailed: As `polite.open_gate`.
    """
    refuse_in_a_loop("polite.blocking.open_gate")
    thread = LoopThread(compose.open_gate(*args, **options))  # type: ignore[arg-type]
    thread.start()
    return Gate(thread)
