"""Drives one robots.txt exchange over the transports, one paced hop after another, within one deadline."""

import asyncio
import logging
import math
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from polite.gate.awaited_turns import AwaitedTurns
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.circuit import is_failure
from polite.pacing.outcome import Outcome
from polite.pacing.retry_after import retry_after_s
from polite.pacing.turn import Turn
from polite.ports import Clock, Transport
from polite.robots.fetching.exchange import Ask, Exchange, Failed, Reply
from polite.robots.fetching.missing_probe import MissingProbe
from polite.robots.fetching.result import FetchResult, Unreachable
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason

log = logging.getLogger("polite")

# Octets of a name that nobody else can have thought of.
_NAME_OCTETS = 16


class RobotsFetcher:
    """Asks origins for their robots.txt. Every hop takes a turn at the origin it goes to, and counts there as a hit.

    `missing`: makes up the name of a page that no site has (`RobotsPolicy.infer_missing`).

    Attributes:
        awaited: The turns that fetches wait for now.
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
    ) -> None:
        self._transports = transports
        self._turns = turns
        self._clock = clock
        self._policy = fetching
        self._robots = robots
        self._missing = missing
        self.awaited = AwaitedTurns()
        self._begun: set[Origin] = set()  # those whose fetch has had its first turn
        self._connections = asyncio.Semaphore(fetching.connections)
        # Of origins that redirects lead to, while one of them waits for its turn there.
        self._doors: WeakValueDictionary[Origin, asyncio.Lock] = WeakValueDictionary()

    async def fetch(
        self,
        origin: Origin,
        *,
        pace: RequestedPace | None = None,
        had_file: bool = False,
        pace_of: Callable[[Origin], RequestedPace | None] = lambda _: None,
    ) -> FetchResult:
        """What the fetch came to; never an exception but a cancellation, or GateClosed while waiting for a turn.

        `pace` is what the origin's last known file asked about pace, and `pace_of` tells that of an origin to which a redirect
        leads: a hop is a request like any other there. `had_file`: a file of the origin is known, so that
        nobody infers that there is none (H7).
        """
        schemes = frozenset(self._transports)
        exchange = Exchange.begin(origin, self._robots, self._policy, schemes=schemes)
        try:
            access, spent = await self._to_the_end(exchange, origin, pace, pace_of)
            if not had_file:
                probe = MissingProbe.begin(origin, access, self._robots, missing=self._missing())
                access, spent = await self._to_the_end(probe, origin, pace, pace_of, spent)
        finally:
            self._begun.discard(origin)
        if access.reason.hostile:
            detail = access.detail if isinstance(access, Unreachable) else ""
            log.warning(
                "the robots.txt of %s was not fetched: at %s %s (%s)",
                origin,
                access.url,
                access.reason.value,
                detail,
            )
        return replace(access, elapsed_s=spent)

    def only_waits(self, origin: Origin) -> bool:
        """Whether a fetch waits for its first turn: the origin was asked for nothing yet."""
        return origin in self.awaited and origin not in self._begun

    async def _to_the_end(
        self,
        step: Exchange | MissingProbe | FetchResult,
        origin: Origin,
        pace: RequestedPace | None,
        pace_of: Callable[[Origin], RequestedPace | None],
        spent: float = 0.0,
    ) -> tuple[FetchResult, float]:
        """One hop after another, and the seconds spent on the network so far."""
        while isinstance(step, Exchange | MissingProbe):
            there = step.ask.target.origin
            read_pace = (lambda: pace) if there == origin else partial(pace_of, there)
            answer, elapsed = await self._hop(origin, step.ask, self._policy.timeout - spent, read_pace)
            spent += elapsed
            step = step.next(answer, retry_after_s=self._retry_after(answer))
        return step, spent

    async def _hop(
        self, origin: Origin, ask: Ask, left_s: float, read_pace: Callable[[], RequestedPace | None]
    ) -> tuple[Reply | Failed, float]:
        """One request in its turn, for the origin's robots.txt.

        Waiting for the turn and for a free connection is not the server's time.
        `read_pace` is called again afterwards: the origin's own file may have been read meanwhile.
        """
        # Its scopes are known then.
        await self._turns.meet(ask.target)
        with self.awaited.waiting(origin, ask.target):
            turn = await self._turn(ask.target, read_pace, foreign=ask.target.origin != origin)
        self._begun.add(origin)
        outcome = Outcome()
        started = self._clock.monotonic()
        try:
            async with self._connection(ask.target, read_pace):
                started = self._clock.monotonic()
                answer = await self._ask(ask, left_s)
            elapsed = self._clock.monotonic() - started
            outcome = self._outcome(answer, elapsed)
        finally:
            # Also when cancelled half way: the server may have seen the request, so it rests all the same.
            # A 503 is asked about fairly often (H5): nobody is to hang in a back-off that is longer than that, nor in a circuit
            # that robots.txt itself has opened.
            most_s = self._robots.busy_retry_max if is_failure(outcome) else math.inf
            try:
                self._turns.settle(turn, ask.target, outcome, read_pace(), most_s=most_s)
            finally:
                self._turns.release(turn)
        return answer, elapsed

    async def _turn(
        self, target: Target, read_pace: Callable[[], RequestedPace | None], *, foreign: bool
    ) -> Turn:
        """The turn of a hop. At an origin of its own, robots.txt goes before the pages, which need it.

        A redirect to another origin is nothing that the pages there wait for: it stands in line with them. One stands there at a
        time, however many origins lead there, so that they cannot hold the pages up by more than one turn each.
        """
        if not foreign:
            return await self._turns.take(target, pace=read_pace(), urgent=True)
        door = self._doors.setdefault(target.origin, asyncio.Lock())
        async with door:
            return await self._turns.take(target, pace=read_pace(), urgent=True, in_line=True)

    @asynccontextmanager
    async def _connection(
        self, target: Target, read_pace: Callable[[], RequestedPace | None]
    ) -> AsyncIterator[None]:
        """A free connection. While the turn's request waits for one, the origin gives no other turn. Its delay begins then."""
        if not self._connections.locked():
            async with self._connections:
                yield
            return
        with self._turns.standstill(target, "its robots.txt waits for a connection"):
            await self._connections.acquire()
        try:
            self._turns.delayed(target, read_pace())
            yield
        finally:
            self._connections.release()

    async def _ask(self, ask: Ask, left_s: float) -> Reply | Failed:
        try:
            async with asyncio.timeout(left_s):
                return await self._transports[ask.target.origin.scheme].get(ask)
        except TimeoutError:
            return Failed(
                Reason.TIMEOUT, f"no whole answer within FetchPolicy.timeout={self._policy.timeout:g} s"
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: the transport lost something of its own, which is a failure like any other.
            return _internal_error(ask, error)
        except Exception as error:  # noqa: BLE001 - RFC 9309, 2.3.1.4: whatever it fails with is "unreachable"
            return _internal_error(ask, error)

    def _retry_after(self, answer: Reply | Failed) -> float | None:
        if isinstance(answer, Failed) or answer.retry_after is None:
            return None
        return retry_after_s(answer.retry_after, self._clock.wall())

    def _outcome(self, answer: Reply | Failed, elapsed: float) -> Outcome:
        if isinstance(answer, Failed):
            return Outcome(elapsed_s=elapsed, failed=True)
        return Outcome.of_answer(answer.status, self._retry_after(answer), elapsed)


def _internal_error(ask: Ask, error: BaseException) -> Failed:
    log.warning("the transport failed for %s: %r", ask.target.url, error)
    return Failed(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}"[:500])
