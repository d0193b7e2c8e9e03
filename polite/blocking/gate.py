"""The gate for threads and its permits: a call waits in the calling thread."""

import inspect
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import ParamSpec, Self, TypeVar

from polite.blocking.loop_thread import LoopThread, refuse_in_a_loop
from polite.compose import gate as compose
from polite.errors import GateClosed, PermitMisused
from polite.gate.explanation import Explanation
from polite.gate.permit import Permit as LoopPermit
from polite.gate.tally import Counters, OriginRefusals
from polite.http.header_fields import Headers
from polite.options import integer
from polite.origin import Target
from polite.pacing.policy import PacingPolicy
from polite.ports import Listener, Meter
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.parse import Robots
from polite.terms.refusal import Refusal
from polite.terms.tdm import TdmFile

P = ParamSpec("P")
T = TypeVar("T")


class Permit:
    """The right to send one request. Made by `polite.blocking.Gate`; any thread may report and leave it.

    A permit that is dropped before it was left is left then. A permit of a `with` block is left when the thread that entered it
    ends.

    Example:
        with gate.permit("https://example.com/about") as permit:
            response = client.get(permit.url)  # of an httpx.Client: requests would rewrite the URL, so it has an adapter
            permit.report(status=response.status_code, headers=response.headers)

    Attributes:
        target: What is requested.
        url: The URL to send as it is: canonical, without credentials and fragment.
    """

    def __init__(self, thread: LoopThread, target: Target) -> None:
        self.target = target
        self.url: str = target.url
        self._thread = thread
        self._permit: LoopPermit | None = None  # once entered
        self._entered = False
        self._left = False
        self._octets: int | None = None

    @property
    def valid(self) -> bool:
        """Whether the turn still holds: as `polite.Permit.valid`."""
        permit = self._permit
        try:
            return permit is not None and self._thread.run(self.url, lambda: permit.valid)
        except GateClosed:
            return False

    @property
    def due(self) -> float:
        """Unix time when the page is worth fetching again: as `polite.Permit.due`, while the permit is open."""
        permit = self._inside()
        return self._thread.run(self.url, lambda: permit.due)

    def require(self) -> None:
        """Raise TurnLost if the permit is not `valid`: nothing may be sent.

        Raises:
            TurnLost: The turn was lost. A new permit is needed.
            PermitMisused: Outside the block.
            GateClosed: The gate was closed meanwhile.
        """
        self._thread.run(self.url, self._inside().require)

    def ready(self) -> None:
        """Wait until the request may be sent, when its connection is there. As `polite.Permit.ready`.

        Raises:
            TurnLost, PermitMisused: As `polite.Permit.ready`.
            GateClosed: The gate was closed meanwhile.
        """
        self._thread.call(self.url, self._inside().ready)

    def sign(self, method: str, url: str | None = None) -> dict[str, str]:
        """Return the header fields that sign a request of this permit: as `polite.Permit.sign`.

        Args:
            method: The method, as it is sent.
            url: The URL of a redirect; by default the permit's own.

        Raises:
            TurnLost, PermitMisused, InvalidOption, InvalidURL: As `polite.Permit.sign`.
            GateClosed: The gate was closed meanwhile.
        """
        return self._thread.run(self.url, partial(self._inside().sign, method, url))

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """Report the response as soon as its headers are there: the origin's delay starts now. As `polite.Permit.report`.

        Raises:
            PermitMisused: Outside the block, or the second time.
            InvalidOption: The status is not an integer from 0 to 999.
        """
        self._tell(partial(self._inside().report, status=status, headers=headers))

    def refused(self, because: Refusal | str) -> None:
        """Count the response as a refusal, whatever its status was. As `polite.Permit.refused`.

        Args:
            because: What says so.

        Raises:
            PermitMisused: Outside the block.
            InvalidOption: Nothing says so.
        """
        self._tell(partial(self._inside().refused, because))

    def received(self, octets: int) -> None:
        """Count octets of the response's body in the origin's budget. As `polite.Permit.received`.

        Raises:
            PermitMisused: Outside the block.
            InvalidOption: `octets` is not an integer >= 0.
        """
        self._inside()
        # They count when the permit is left: a call of the loop for each piece of a body would slow it down.
        self._octets = (self._octets or 0) + integer("received: octets", octets, least=0)

    def began(self) -> None:
        """The response began, and its status is not known: the origin's delay starts now. At most once, before `report`."""
        self._tell(self._inside().began)

    def unsent(self) -> None:
        """Give the turn back: nothing was sent, so no delay starts. Ends the permit. May be called twice.

        Raises:
            PermitMisused: After `report` or `began`.
        """
        self._entered = True
        if self._permit is not None:
            self._tell(self._permit.unsent)
        self._left = True

    def unread(self) -> None:
        """Remember nothing of the response for recrawling: it was not read to its end. As `polite.Permit.unread`."""
        permit = self._permit
        if permit is not None and not self._left:
            self._tell(permit.unread)

    def leave(self, error: BaseException | None = None) -> None:
        """End the permit: the next request may have its turn. May be called twice.

        Args:
            error: What ended the request, if there was no response.
        """
        permit, left, self._left = self._permit, self._left, True
        if permit is not None and not left:
            self._tell(lambda: self._end(permit, error))

    def _end(self, permit: LoopPermit, error: BaseException | None) -> None:
        if self._octets is not None:
            with suppress(PermitMisused):  # the gate has ended it
                permit.received(self._octets)
        permit.leave(error)

    def enter(self) -> Self:
        """Wait for the turn without a `with` block. The permit belongs to no thread; end it with `leave`.

        Raises what entering the block raises.
        """
        return self._wait(LoopPermit.enter)

    def __enter__(self) -> Self:
        return self._wait(LoopPermit.__aenter__)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave(error)

    def __del__(self) -> None:
        if self._permit is not None and not self._left:
            # A caller that drops it has not confirmed that the response was read.
            if self._octets is not None:
                self._thread.post(partial(self._permit.received, self._octets))
            self._thread.post(self._permit.unread)
            self._thread.post(self._permit.leave)

    def _wait(self, enter: Callable[[LoopPermit], Awaitable[LoopPermit]]) -> Self:
        if self._entered:
            raise PermitMisused(f"entered twice: {self.url}; one permit is one request", url=self.url)
        self._entered = True

        async def work() -> None:
            permit = await enter(self._thread.gate.permit(self.url))
            # Set on the loop: an interrupt in the calling thread cannot lose it.
            self._permit = permit

        try:
            self._thread.call(self.url, work)
        except BaseException:
            self._thread.post(self._give_back)
            raise
        return self

    def _give_back(self) -> None:
        self._left = True
        if self._permit is not None:
            self._permit.unsent()

    def _inside(self) -> LoopPermit:
        if self._permit is None or self._left:
            raise PermitMisused(f"used outside the permit's block: {self.url}", url=self.url)
        return self._permit

    def _tell(self, work: Callable[[], object]) -> None:
        """Call it on the loop. In a closed gate, or a fork, no request comes after it: then it has no effect."""
        with suppress(GateClosed):
            self._thread.run(self.url, work)


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
        self._thread.run("the new pacing", partial(setattr, self._thread.gate, "pacing", policy))

    @property
    def counters(self) -> Counters:
        """A copy of the counts since the gate was opened."""
        return self._thread.gate.counters

    def refusals(self, window: float | None = None) -> list[OriginRefusals]:
        """Return how many of its requests each origin refused, also in the last `window` seconds: as `polite.Gate.refusals`."""
        return self._thread.gate.refusals(window)

    @property
    def refusing(self) -> int:
        """How many origins have refused a request, at most 1,000."""
        return self._thread.gate.refusing

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
        end = self._thread.run("a listener", partial(self._thread.gate.listen, listener))
        return partial(self._thread.post, end)

    def measure(self, meter: Meter) -> Callable[[], None]:
        """Pass the times of each permit to a meter, on the gate's own thread, until the returned function is called."""
        end = self._thread.run("a meter", partial(self._thread.gate.measure, meter))
        return partial(self._thread.post, end)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, on the gate's own thread, when the gate closes. What it raises is logged."""
        self._thread.run("a callback", lambda: self._thread.gate.on_close(callback))

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

    def __exit__(self, *_: object) -> None:
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
