"""A permit for threads: the calling thread waits for its turn."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from polite.blocking.loop_thread import LoopThread
from polite.errors import GateClosed, PermitMisused
from polite.gate.permit import Permit as LoopPermit
from polite.http.header_fields import Headers
from polite.options import integer
from polite.origin import Target


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
        permit = self._inside()
        return self._thread.run(self.url, lambda: permit.sign(method, url))

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """Report the response as soon as its headers are there: the origin's delay starts now. As `polite.Permit.report`.

        Raises:
            PermitMisused: Outside the block, or the second time.
            InvalidOption: The status is not an integer from 0 to 999.
        """
        permit = self._inside()
        self._tell(lambda: permit.report(status=status, headers=headers))

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
