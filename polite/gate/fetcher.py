"""Fetches robots.txt, one paced hop after another, and other bodies, one request each; signs what it sends."""

import asyncio
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakValueDictionary

from polite.errors import InvalidOption, TurnLost
from polite.gate.turns import LONG_BACK_OFF_S, Turns
from polite.log import fields, log
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.outcome import Outcome, is_failure, retry_after_s
from polite.pacing.rate_limits import RateLimits
from polite.pacing.turn import Turn
from polite.ports import Ask, Clock, Failed, Reply, Signer, Transport
from polite.robots.decision import Disallowed
from polite.robots.exchange import Exchange, MissingProbe
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Unreachable
from polite.sitemaps.entry import SitemapPolicy

# RFC 9110, 5.6.2. A longer name is no method.
_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}").fullmatch


class SignerFailed(RuntimeError):
    """A user's signer failed. That says nothing of the server, whatever the signer raised: its vault may be out of reach."""


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signs requests at the moment when they are sent."""

    signer: Signer
    clock: Clock

    def of(self, method: str, target: Target) -> dict[str, str]:
        """Return the header fields that sign a request which is sent now.

        Raises InvalidOption for a method that is no token, and SignerFailed.
        """
        if _METHOD(method) is None:
            raise InvalidOption(f"sign: method must be one such as GET, got {method[:80]!r}", url=target.url)
        try:
            return dict(self.signer.sign(method, target, self.clock.wall()))
        except Exception as error:
            raise SignerFailed(f"the signer failed: {error!r}") from error


class NetworkTimeout:
    """A time-out of the network, which stands still while a request that has its connection waits until it may be sent.

    Attributes:
        timeout: The time-out, to be entered.
        waited_s: How long it stood still (seconds).
    """

    def __init__(self, seconds: float, ready: Callable[[], Awaitable[None]]) -> None:
        self.timeout: asyncio.Timeout = asyncio.timeout(seconds)
        self.waited_s: float = 0.0
        self._ready = ready

    async def ready(self) -> None:
        """Await `ready` inside the time-out (see Ask)."""
        time = asyncio.get_running_loop().time
        began, ends_at = time(), self.timeout.when()
        self.timeout.reschedule(None)
        try:
            await self._ready()
        finally:
            waited_s = time() - began
            self.waited_s += waited_s
            self.timeout.reschedule(None if ends_at is None else ends_at + waited_s)


@dataclass(eq=False, repr=False)
class Downloads:
    """What the gate's own requests are sent with: its User-Agent and its guarded addresses.

    Attributes:
        transports: The transports by scheme.
        fetching: The limits of the transports.
        signatures: Signs each request, for the server that it is sent to, if the gate has a signer.
        connections: How many requests other than those for robots.txt may be in flight: half of the gate's connections.
    """

    transports: Mapping[str, Transport]
    fetching: FetchPolicy
    signatures: Signatures | None = None

    def __post_init__(self) -> None:
        self.connections: asyncio.Semaphore = asyncio.Semaphore(max(1, self.fetching.connections // 2))

    async def answer(
        self,
        ask: Ask,
        send: Callable[[Ask], Awaitable[Reply | Failed]],
        network: NetworkTimeout,
        policy: FetchPolicy | SitemapPolicy,
        *,
        file: bool = False,
    ) -> Reply | Failed:
        """Send a request within its time-out, signed. Any failure is a Failed (RFC 9309, 2.3.1.4). Raises TurnLost.

        Args:
            ask: The request.
            send: Sends it.
            network: The time-out.
            policy: Sets it.
            file: Whether it is another file than a robots.txt.
        """
        target = ask.target
        signed = replace(ask, ready=network.ready)
        if self.signatures is not None:
            signed = replace(signed, signed=partial(self.signatures.of, "GET", target))
        try:
            async with network.timeout:
                return await send(signed)
        except TurnLost:
            raise
        except TimeoutError:
            limit = f"{type(policy).__name__}.timeout={policy.timeout:g}"
            return Failed(Reason.TIMEOUT, f"no whole response within {limit} s")
        except SignerFailed as error:
            extra = fields("signer_failed", origin=target.origin, url=target.url, error=error)
            log.exception("%s was not requested: the signer failed", target.url, extra=extra)
            return Failed(Reason.SIGNER_FAILED, str(error)[:500])
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            # A transport of the user, or a full disk. If this task was not cancelled, something inside the transport was.
            named = partial(fields, origin=target.origin, url=target.url, error=error)
            extra = named("file_failed") if file else named("transport_failed")
            log.warning("%s was not fetched: %r", target.url, error, extra=extra)
            return Failed(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}"[:500])


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


# Octets of a random name that no site has.
_NAME_OCTETS = 16


@dataclass(slots=True)
class _Fetch:
    """One fetch of a robots.txt.

    Attributes:
        pace_of: Returns the pace of an origin, to be asked again after each wait: its file may have been read meanwhile.
        spent_s: Seconds on the network so far.
    """

    origin: Origin
    pace_of: Callable[[Origin], RequestedPace | None]
    kept: ExitStack | None
    meanwhile: Callable[[], Awaitable[None]] | None
    spent_s: float = 0.0


@dataclass(eq=False, repr=False)
class RobotsFetcher:
    """Fetches robots.txt. Every hop takes a turn at the origin it goes to, and counts there as a request.

    Attributes:
        awaited: The turns that fetches wait for now.

    Args:
        missing: Makes up the name of a page that no site has (`RobotsPolicy.infer_missing`).
    """

    downloads: Downloads
    turns: Turns
    clock: Clock
    robots: RobotsPolicy
    missing: Callable[[], str] = lambda: secrets.token_hex(_NAME_OCTETS)
    awaited: AwaitedTurns = field(default_factory=AwaitedTurns, init=False)
    _begun: set[Origin] = field(default_factory=set, init=False)  # origins whose fetch has had its first turn

    def __post_init__(self) -> None:
        self._connections = asyncio.Semaphore(self.downloads.fetching.connections)
        # By the origin that redirects lead to: one of them at a time waits for its turn there.
        self._redirect_locks: WeakValueDictionary[Origin, asyncio.Lock] = WeakValueDictionary()

    async def fetch(
        self,
        origin: Origin,
        *,
        had_file: bool = False,
        pace_of: Callable[[Origin], RequestedPace | None] = lambda _: None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
        kept: ExitStack | None = None,
    ) -> FetchResult:
        """Return the result of the fetch. Raises only what a wait for a turn raises, cancellation, and for `meanwhile`.

        Args:
            had_file: A file of the origin is known: then its absence is not inferred (H7).
            pace_of: Returns the pace that the last known file of an origin requests. A redirect is a request like any other there.
            meanwhile: Awaited if the fetch had to wait for its first turn. It raises an error if another process has fetched the
                file: then nothing is sent.
            kept: For turns that processes share. Until it is closed, no other process gets a turn at the origin after the last hop:
                it would fetch the file again before this one saves it.
        """
        fetch = _Fetch(origin, pace_of, kept, meanwhile)
        step: Exchange | MissingProbe | FetchResult
        downloads = self.downloads
        schemes = frozenset(downloads.transports)
        step = Exchange.begin(origin, self.robots, downloads.fetching, schemes=schemes)
        try:
            access = await self._to_the_end(fetch, step)
            if not had_file and self.robots.infer_missing:
                step = MissingProbe.begin(origin, access, self.robots, missing=self.missing())
                access = await self._to_the_end(fetch, step)
        finally:
            self._begun.discard(origin)
        if isinstance(access, Unreachable) and access.reason.hostile:
            text, reason = "the robots.txt of %s was not fetched: at %s %s (%s)", access.reason
            extra = fields("robots_hostile", origin=origin, url=access.url, reason=reason.name)
            log.warning(text, origin, access.url, reason.value, access.detail, extra=extra)
        return replace(access, elapsed_s=fetch.spent_s)

    def only_waits(self, origin: Origin) -> bool:
        """Whether a fetch waits for its first turn: no request was sent yet."""
        return origin in self.awaited and origin not in self._begun

    async def _to_the_end(self, fetch: _Fetch, step: Exchange | MissingProbe | FetchResult) -> FetchResult:
        """Make one hop after another, each in its turn."""
        first = step
        while isinstance(step, Exchange | MissingProbe):
            target, kept = step.ask.target, fetch.kept
            if kept is not None:
                # Two fetches that redirect to each other's origins would wait for ever.
                kept.close()
            try:
                turn = await self._turn(fetch, target)
            except Disallowed as error:
                if target.origin == fetch.origin:
                    raise
                step = step.next(Failed(Reason.OPERATOR, str(error)))
                continue
            # Again if the turn was lost before anything was sent.
            if fetch.meanwhile is not None and step is first and turn.waited and isinstance(step, Exchange):
                try:
                    await fetch.meanwhile()
                except BaseException:
                    self.turns.give_back(turn)
                    self.turns.counters.robots -= 1
                    raise
            self._begun.add(fetch.origin)
            if kept is not None and target.origin == fetch.origin:
                kept.callback(self.turns.pacer.keep(turn))
            step = await self._send(fetch, turn, step)
        return step

    async def _send(
        self, fetch: _Fetch, turn: Turn, step: Exchange | MissingProbe
    ) -> Exchange | MissingProbe | FetchResult:
        """Send the request of a step, end its turn, and return the next step.

        That is the same one, and nothing was sent, if the turn is of no use when a connection is free: it was lost, say. The time
        it waits for a connection is not the server's.
        """
        outcome: Outcome | None = Outcome()
        target, turns = step.ask.target, self.turns
        try:
            async with self._connections:

                async def ready() -> None:
                    await turns.ask_again(turn, target, fetch.pace_of(target.origin))

                # A store, or requests that hold the connections, may have been waited for since the grant. A back-off (another
                # request was refused meanwhile) must not keep the connection from other origins.
                pace = fetch.pace_of(target.origin)
                may_send = await turns.ask_again(turn, target, pace, most_s=LONG_BACK_OFF_S)
                if not may_send or not turns.holds(turn) or turns.stopped(target):
                    outcome = None
                    return step
                downloads = self.downloads
                network = NetworkTimeout(downloads.fetching.timeout - fetch.spent_s, ready)
                started = self.clock.monotonic()
                send = downloads.transports[target.origin.scheme].get
                response = await downloads.answer(step.ask, send, network, downloads.fetching)
            elapsed = self.clock.monotonic() - started - network.waited_s
            fetch.spent_s += elapsed
            outcome = self._outcome(response, elapsed)
            retry_s = outcome.retry_after_s
        finally:
            if outcome is None:
                turns.give_back(turn)
            else:
                # When cancelled half way, too: the server may have seen the request, so its delay runs. After a 503, robots.txt is
                # fetched again fairly soon (H5): no back-off and no circuit that robots.txt itself has opened may last longer.
                most_s = self.robots.busy_retry_max if is_failure(outcome) else math.inf
                try:
                    turns.settle(turn, target, outcome, fetch.pace_of(target.origin), most_s=most_s)
                finally:
                    turns.release(turn)
        return step.next(response, retry_after_s=retry_s)

    async def _turn(self, fetch: _Fetch, target: Target) -> Turn:
        """Wait for the turn of a hop. At its own origin, robots.txt goes before the pages, which need it.

        The pages of another origin do not need what a redirect fetches there: it queues behind them. One redirect at a time queues
        there, however many origins lead to it, so that redirects delay each page by one turn at most.
        """
        turns, there = self.turns, target.origin
        if turns.orders.rows and (forbidden := turns.forbidden(target)) is not None:
            raise forbidden
        # Another process may have the turn: then only a wait can tell.
        turn = None if turns.shared else turns.take_now(target, pace=fetch.pace_of(there))
        if turn is not None:
            turns.counters.robots += 1
            return turn
        # First, since its scopes are known then.
        await turns.meet(target)
        with self.awaited.waiting(fetch.origin, target):
            if there == fetch.origin:
                return await turns.take(target, pace=fetch.pace_of(there), robots=True)
            async with self._redirect_locks.setdefault(there, asyncio.Lock()):
                pace = fetch.pace_of(there)
                return await turns.take(target, pace=pace, robots=True, overtake=False)

    def _outcome(self, response: Reply | Failed, elapsed: float) -> Outcome:
        if isinstance(response, Failed):
            # What the signer raised says nothing of the server: its ordinary delay follows.
            return Outcome(elapsed_s=elapsed, failed=response.reason is not Reason.SIGNER_FAILED)
        limits = RateLimits.of([response.rate_limit or ""], [response.rate_limit_policy or ""])
        retry = response.retry_after
        retry_s = None if retry is None else retry_after_s(retry, self.clock.wall())
        return Outcome.of_answer(response.status, retry_s, elapsed, limits)
