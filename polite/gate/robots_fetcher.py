"""Fetches robots.txt: drives an exchange over the transports, one paced hop after another, within one deadline."""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from polite.gate.downloads import NetworkTimeout
from polite.gate.signatures import Signatures, SignerFailed
from polite.gate.turns import Turns
from polite.log import fields
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.circuit import is_failure
from polite.pacing.outcome import Outcome, retry_after_s
from polite.pacing.rate_limits import RateLimits
from polite.pacing.turn import Turn
from polite.ports import Clock, Transport
from polite.robots.exchange import Ask, Exchange, Failed, MissingProbe, Reply
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unreachable, timed

Observer = Callable[[Target], None]


class AwaitedTurns:
    """By origin: the URL for whose turn the fetch of its robots.txt waits, and functions to call at each such wait."""

    def __init__(self) -> None:
        self._awaited: dict[Origin, Target] = {}
        self._observers: dict[Origin, dict[Observer, None]] = {}

    def __contains__(self, origin: Origin) -> bool:
        """Whether the fetch of the origin's robots.txt waits for a turn."""
        return origin in self._awaited

    @contextmanager
    def waiting(self, origin: Origin, target: Target) -> Iterator[None]:
        """Inside the block, the fetch of the origin's robots.txt waits for the turn of `target`."""
        self._awaited[origin] = target
        try:
            for observe in list(self._observers.get(origin, ())):
                observe(target)
            yield
        finally:
            del self._awaited[origin]

    @contextmanager
    def observed(self, origin: Origin, observe: Observer) -> Iterator[None]:
        """Inside the block, call `observe` with the URL of each such wait, the present one included."""
        observers = self._observers.setdefault(origin, {})
        observers[observe] = None
        try:
            if (target := self._awaited.get(origin)) is not None:
                observe(target)
            yield
        finally:
            del observers[observe]
            if not observers and self._observers.get(origin) is observers:
                del self._observers[origin]


log: logging.Logger = logging.getLogger("polite")

# Octets of a random name that no site has.
_NAME_OCTETS = 16


class FetchSpared(Exception):
    """Another process has fetched the robots.txt while this one waited for its turn."""


class RobotsFetcher:
    """Fetches robots.txt. Every hop takes a turn at the origin it goes to, and counts there as a request.

    Attributes:
        awaited: The turns that fetches wait for now.

    Args:
        missing: Makes up the name of a page that no site has (`RobotsPolicy.infer_missing`).
        signatures: Signs each request, for the server that it is sent to.
    """

    def __init__(
        self,
        transports: Mapping[str, Transport],
        turns: Turns,
        clock: Clock,
        fetching: FetchPolicy,
        robots: RobotsPolicy,
        *,
        missing: Callable[[], str] = lambda: secrets.token_hex(_NAME_OCTETS),
        signatures: Signatures | None = None,
    ) -> None:
        self._transports = transports
        self._schemes = frozenset(transports)
        self._turns = turns
        self._clock = clock
        self._policy = fetching
        self._robots = robots
        self._missing = missing
        self._signatures = signatures
        self.awaited: AwaitedTurns = AwaitedTurns()
        self._begun: set[Origin] = set()  # origins whose fetch has had its first turn
        self._connections = asyncio.Semaphore(fetching.connections)
        # By the origin that redirects lead to: one of them at a time waits for its turn there.
        self._redirect_locks: WeakValueDictionary[Origin, asyncio.Lock] = WeakValueDictionary()

    async def fetch(
        self,
        origin: Origin,
        *,
        pace: RequestedPace | None = None,
        had_file: bool = False,
        pace_of: Callable[[Origin], RequestedPace | None] = lambda _: None,
        meanwhile: Callable[[], Awaitable[bool]] | None = None,
        kept: ExitStack | None = None,
    ) -> FetchResult:
        """Return the result of the fetch. Raises only what a wait for a turn raises, cancellation, and for `meanwhile`.

        Args:
            pace: The pace that the origin's last known file requests.
            had_file: A file of the origin is known: then its absence is not inferred (H7).
            pace_of: Returns the pace of an origin to which a redirect leads. A hop is a request like any other there.
            meanwhile: Awaited if the fetch had to wait for its first turn. If it returns True, another process has fetched the
                file, and nothing is sent.
            kept: For turns that processes share. Until it is closed, no other process gets a turn at the origin after the last hop:
                it would fetch the file again before this one saves it.

        Raises:
            FetchSpared: `meanwhile` returned True.
        """
        exchange = Exchange.begin(origin, self._robots, self._policy, schemes=self._schemes)
        try:
            turn = None
            if meanwhile is not None and isinstance(exchange, Exchange):
                turn = await self._turn_of(origin, exchange.ask.target, lambda: pace)
                if turn.waited and await self._found(meanwhile, turn):
                    raise FetchSpared
            access, spent = await self._to_the_end(exchange, origin, pace, pace_of, kept, turn=turn)
            if not had_file and self._robots.infer_missing:
                probe = MissingProbe.begin(origin, access, self._robots, missing=self._missing())
                access, spent = await self._to_the_end(probe, origin, pace, pace_of, kept, spent)
        finally:
            self._begun.discard(origin)
        if not isinstance(access, Found) and access.reason.hostile:
            detail = access.detail if isinstance(access, Unreachable) else ""
            log.warning(
                "the robots.txt of %s was not fetched: at %s %s (%s)",
                origin,
                access.url,
                access.reason.value,
                detail,
                extra=fields("robots_hostile", origin=origin, url=access.url, reason=access.reason.name),
            )
        return timed(access, spent)

    def only_waits(self, origin: Origin) -> bool:
        """Whether a fetch waits for its first turn: no request was sent yet."""
        return origin in self.awaited and origin not in self._begun

    async def _to_the_end(
        self,
        step: Exchange | MissingProbe | FetchResult,
        origin: Origin,
        pace: RequestedPace | None,
        pace_of: Callable[[Origin], RequestedPace | None],
        kept: ExitStack | None,
        spent: float = 0.0,
        *,
        turn: Turn | None = None,
    ) -> tuple[FetchResult, float]:
        """Make one hop after another; return the result and the seconds spent on the network so far.

        Args:
            turn: The turn of the first hop, if that was granted already.
        """
        while isinstance(step, Exchange | MissingProbe):
            there = step.ask.target.origin
            read_pace = (lambda: pace) if there == origin else partial(pace_of, there)
            left_s = self._policy.timeout - spent
            response, elapsed = await self._hop(origin, step.ask, left_s, read_pace, kept, turn)
            turn = None
            spent += elapsed
            step = step.next(response, retry_after_s=self._retry_after(response))
        return step, spent

    async def _hop(
        self,
        origin: Origin,
        ask: Ask,
        left_s: float,
        read_pace: Callable[[], RequestedPace | None],
        kept: ExitStack | None,
        turn: Turn | None,
    ) -> tuple[Reply | Failed, float]:
        """Send one request in its turn, for the origin's robots.txt.

        The time it waits for the turn and for a connection is not the server's. `read_pace` is called again afterwards: the
        origin's own file may have been read meanwhile.
        """
        sent = None
        while sent is None:
            # Without a result, the turn was lost during the wait for a connection.
            if turn is None:
                if kept is not None:
                    # Two fetches that redirect to each other's origins would wait for ever.
                    kept.close()
                turn = await self._turn_of(origin, ask.target, read_pace)
            self._begun.add(origin)
            if kept is not None and ask.target.origin == origin:
                kept.callback(self._turns.keep(turn))
            sent = await self._send(turn, ask, left_s, read_pace)
            turn = None
        return sent

    async def _send(
        self, turn: Turn, ask: Ask, left_s: float, read_pace: Callable[[], RequestedPace | None]
    ) -> tuple[Reply | Failed, float] | None:
        """Send one request, and end its turn. Return None, and send nothing, if the turn is of no use when a connection is free."""
        outcome: Outcome | None = Outcome()
        started = self._clock.monotonic()
        try:
            async with self._connections:

                async def ready() -> None:
                    await self._turns.ask_again(turn, ask.target, read_pace())

                # A store, or requests that hold the connections, may have been waited for since the grant. A back-off must not
                # keep the connection from other origins.
                if not (backs_off := self._turns.backs_off(turn)):
                    await ready()
                if backs_off or not self._turns.holds(turn):
                    outcome = None
                    return None
                network = NetworkTimeout(left_s, ready)
                started = self._clock.monotonic()
                response = await self._ask(ask, network)
            elapsed = self._clock.monotonic() - started - network.waited_s
            outcome = self._outcome(response, elapsed)
        finally:
            if outcome is None:
                self._turns.give_back(turn)
            else:
                self._end(turn, ask.target, outcome, read_pace())
        return response, elapsed

    def _end(self, turn: Turn, target: Target, outcome: Outcome, pace: RequestedPace | None) -> None:
        """Settle and release a turn. When cancelled half way, too: the server may have seen the request, so its delay runs."""
        # After a 503, robots.txt is fetched again fairly soon (H5): neither a back-off nor a circuit that robots.txt itself has
        # opened may last longer than that.
        most_s = self._robots.busy_retry_max if is_failure(outcome) else math.inf
        try:
            self._turns.settle(turn, target, outcome, pace, most_s=most_s)
        finally:
            self._turns.release(turn)

    async def _found(self, meanwhile: Callable[[], Awaitable[bool]], turn: Turn) -> bool:
        """Whether the file was fetched meanwhile: then the turn is given back."""
        found = True
        try:
            found = await meanwhile()
        finally:
            # If the look fails or is cancelled, too.
            if found:
                self._turns.spare(turn)
        return found

    async def _turn_of(
        self, origin: Origin, target: Target, read_pace: Callable[[], RequestedPace | None]
    ) -> Turn:
        """Wait for the turn of a hop, for the origin's robots.txt."""
        turn = self._turns.take_robots_now(target, pace=read_pace())
        if turn is not None:
            return turn
        # First, since its scopes are known then.
        await self._turns.meet(target)
        with self.awaited.waiting(origin, target):
            return await self._turn(target, read_pace, foreign=target.origin != origin)

    async def _turn(
        self, target: Target, read_pace: Callable[[], RequestedPace | None], *, foreign: bool
    ) -> Turn:
        """Take the turn of a hop. At its own origin, robots.txt goes before the pages, which need it.

        The pages of another origin do not need what a redirect fetches there: it queues behind them. One redirect at a time queues
        there, however many origins lead to it, so that redirects delay each page by one turn at most.
        """
        if not foreign:
            return await self._turns.take(target, pace=read_pace(), urgent=True)
        lock = self._redirect_locks.setdefault(target.origin, asyncio.Lock())
        async with lock:
            return await self._turns.take(target, pace=read_pace(), urgent=True, overtake=False)

    async def _ask(self, ask: Ask, network: NetworkTimeout) -> Reply | Failed:
        ask = replace(ask, ready=network.ready)
        try:
            async with network.timeout:
                signed = ask if self._signatures is None else self._signatures.added(ask)
                return await self._transports[ask.target.origin.scheme].get(signed)
        except TimeoutError:
            return Failed(
                Reason.TIMEOUT, f"no whole response within FetchPolicy.timeout={self._policy.timeout:g} s"
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled: something inside the transport was, which is a failure like any other.
            return _internal_error(ask, error)
        except SignerFailed as error:
            extra = fields("signer_failed", origin=ask.target.origin, url=ask.target.url, error=error)
            log.exception("%s was not requested: the signer failed", ask.target.url, extra=extra)
            return Failed(Reason.SIGNER_FAILED, str(error)[:500])
        except Exception as error:  # noqa: BLE001 - RFC 9309, 2.3.1.4: any failure is "unreachable"
            return _internal_error(ask, error)

    def _retry_after(self, response: Reply | Failed) -> float | None:
        if isinstance(response, Failed) or response.retry_after is None:
            return None
        return retry_after_s(response.retry_after, self._clock.wall())

    def _outcome(self, response: Reply | Failed, elapsed: float) -> Outcome:
        if isinstance(response, Failed):
            # What the signer raised says nothing of the server: its ordinary delay follows.
            return Outcome(elapsed_s=elapsed, failed=response.reason is not Reason.SIGNER_FAILED)
        return Outcome.of_answer(
            response.status, self._retry_after(response), elapsed, _rate_limits(response)
        )


def _rate_limits(reply: Reply) -> RateLimits | None:
    if reply.rate_limit is None and reply.rate_limit_policy is None:
        return None
    return RateLimits.of([reply.rate_limit or ""], [reply.rate_limit_policy or ""])


def _internal_error(ask: Ask, error: BaseException) -> Failed:
    extra = fields("transport_failed", origin=ask.target.origin, url=ask.target.url, error=error)
    log.warning("the transport failed for %s: %r", ask.target.url, error, extra=extra)
    return Failed(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}"[:500])
