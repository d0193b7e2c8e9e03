"""The right to send one request now: a permit waits for its turn, holds it until it is left, and settles it.

The way of `_acquire`: `_require` raises what stands against waiting at all (a closed gate, a spent budget, a task that would wait
for itself). `RulesCache.get`, or else `Services.learn`, gives the rules. `_allowed` raises Disallowed, or decides about a
long URL in a thread. `Turns.take_now` takes a free turn, or `_wait` waits for one. After a wait, `_grounds_after` looks whether
rules still allow the URL. If not, the turn is skipped and the rules are learned again; the next turn then comes first. `_hold`
begins the block.
"""

import asyncio
from collections.abc import Coroutine, Hashable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from polite.errors import GateClosed, InvalidOption, PermitMisused, TurnLost, redact_url
from polite.events import LicenseRequired, PaymentRequired, PermitDelayed
from polite.gate.fetcher import SignerFailed
from polite.gate.recrawl import PageReport
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.services import Services, waits_for_itself
from polite.http.challenge import DEMAND_FIELDS, DEMANDING, Demand, demand
from polite.http.header_fields import LENGTH_FIELDS, Headers, body_length, selected
from polite.options import integer
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.outcome import ORDINARY, PACING_FIELDS, Outcome, reported
from polite.pacing.policy import Anchor
from polite.pacing.turn import Turn
from polite.recrawl import RELEVANT_FIELDS
from polite.request_url import request_url
from polite.terms.refusal import REFUSAL_FIELDS, Refusal, RefusalKind, refusal

if TYPE_CHECKING:
    from yarl import URL


# The outcome of a response whose status is not known (yet).
_BEGUN = Outcome()
_READ_FIELDS = RELEVANT_FIELDS | PACING_FIELDS.names | DEMAND_FIELDS | LENGTH_FIELDS | REFUSAL_FIELDS
# What `PacingPolicy.detect_refusals` takes for refusals; a login or a payment has nothing to do with the pace.
_REFUSALS = frozenset({RefusalKind.CHALLENGE, RefusalKind.BLOCK})
# Characters of what says so.
_TOLD = 200


# A permit is new, is entered (it waits, or has its turn), and ends: it was left, given back or refused.
NEW, ENTERED, ENDED = "not entered", "waiting", "left"


@dataclass(slots=True, eq=False, repr=False)
class Permit:
    """The right to send one request, from entering to leaving and only then. Made by `Gate.permit` and `Gate.acquire`.

    Example:
        async with gate.permit("https://example.com/about") as permit:
            async with session.get(permit.request_url, allow_redirects=False) as response:
                permit.report(status=response.status, headers=response.headers)
                body = await response.read()

    If connecting takes long, call `await permit.ready()` just before sending. Where no block fits, such as between callbacks, call
    `enter` and `leave` instead of `async with`.
    """

    _services: Services
    _target: Target
    _turn: Turn | None = field(default=None, init=False)
    _grounds: Grounds | None = field(default=None, init=False)
    _pace: RequestedPace | None = field(default=None, init=False)
    _outcome: Outcome | None = field(default=None, init=False)
    _demand: Demand | None = field(default=None, init=False)
    _page: PageReport | None = field(default=None, init=False)
    _stage: str = field(default=NEW, init=False)
    _lost: bool = field(default=False, init=False)  # the turn was taken back, while the block goes on
    # The task that entered the block, if it did.
    _holder: asyncio.Task[Any] | None = field(default=None, init=False)

    @property
    def scopes(self) -> tuple[Hashable, ...]:
        """The scopes of its turn, narrowest first; none outside the block."""
        return () if self._turn is None else self._turn.scopes

    @property
    def target(self) -> Target:
        """The URL's parts: origin, and path with query."""
        return self._target

    @property
    def url(self) -> str:
        """The URL that was decided: canonical, without credentials and fragment.

        Some clients rewrite a str, and would request another URL than was decided: pass `request_url` to aiohttp, and use polite's
        adapters for requests, niquests and curl_cffi.
        """
        return self._target.url

    @property
    def request_url(self) -> "URL":
        """The URL as a `yarl.URL`: pass it to aiohttp, which sends it letter by letter."""
        return request_url(self._target)

    @property
    def valid(self) -> bool:
        """Whether the turn still holds. It can be lost inside the block, after `PacingPolicy.max_hold` or to another process.

        Without a valid permit no request must be sent. Look as late as possible, when a connection is there.
        """
        turn = self._turn
        return turn is not None and not self._lost and self._services.turns.holds(turn)

    def require(self) -> None:
        """Raise TurnLost if the permit is not `valid`: nothing may be sent.

        Raises:
            TurnLost: The turn was lost. A new permit is needed.
            PermitMisused: Outside the block.
        """
        if self._turn is None:
            raise PermitMisused(f"required outside the permit's block: {self.url}", url=self.url)
        if not self.valid:
            raise self._services.turn_lost(self._turn, self._target)

    async def ready(self) -> None:
        """Wait until the request may be sent, when its connection is there.

        Where a scope's concurrency is above 1, other permits are entered while this one connects. Its delay counts between the
        requests, so this one may have to wait, as it does for the back-off if another one is refused. A permit that was entered
        60 seconds ago may have to wait for another gate of the process. Otherwise it does what `require` does.

        Raises:
            TurnLost: The turn was lost. A new permit is needed.
            PermitMisused: Outside the block.
        """
        self.require()
        if self._turn is not None:
            turns, target = self._services.turns, self._target
            await turns.ask_again(self._turn, target, self._pace)
            self.require()
            lost = f"the turn for {target.url} is lost"
            if turns.stopped(target):
                said = f"{lost}: an operator holds or forbids it by now. Send nothing"
                raise TurnLost(said, url=target.url)
            if turns.closed_s(target.origin, self._pace):
                lost = f"{lost}: the site closed meanwhile (Visit-time, or PacingPolicy.hours)"
                raise TurnLost(f"{lost}. Send nothing: request a new permit", url=target.url)

    def sign(self, method: str, url: str | None = None) -> dict[str, str]:
        """Return the header fields that sign a request of this permit: make them just before it is sent, since they expire.

        Send them only to the host and port of the URL, and once: a redirect needs fields of its own. They are none if the signer
        does not sign this URL, such as one over plain http.

        Example:
            async with gate.permit("https://example.com/about") as permit:
                headers = permit.sign("GET")
                async with session.get(permit.request_url, headers=headers, allow_redirects=False) as response:
                    permit.report(status=response.status, headers=response.headers)

        Args:
            method: The method, as sent, such as "GET".
            url: The URL of a redirect that the client follows within this permit. By default that of the permit.

        Raises:
            TurnLost: The turn was lost: nothing may be sent.
            PermitMisused: Outside the block.
            InvalidOption: The gate was opened without `open_gate(signer=...)`, or the method is no token (RFC 9110, 5.6.2).
            InvalidURL: The URL cannot be fetched.
            RuntimeError: The signer failed; its error is the cause.
        """
        signatures = self._services.downloads.signatures
        if signatures is None:
            raise InvalidOption(f"sign needs open_gate(signer=...): {self.url}", url=self.url)
        self.require()
        return signatures.of(method, self._target if url is None else Target.of(url))

    @property
    def due(self) -> float:
        """Unix time when the page is worth fetching again, from what was reported: `frontier.put(url, again=True, not_before=due)`.

        Raises:
            PermitMisused: Nothing was reported, or the gate was opened without `open_gate(recrawl=RecrawlPolicy())`.
        """
        if self._page is None:
            missing = "open_gate(recrawl=RecrawlPolicy())" if self._services.recrawl is None else "a report"
            raise PermitMisused(f"due needs {missing}: {self.url}", url=self.url)
        return self._page.due

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """Report the response as soon as its headers are there: the origin's delay starts now (T4: Retry-After, 429, 503).

        Without a report, the delay starts when the block exits. After `PacingPolicy.max_hold` the turn is gone; a report still
        lengthens the delay.

        Args:
            status: The response's status, 0 to 999, or an `http.HTTPStatus`. Below 100 it counts as a request that failed.
            headers: A mapping, or pairs, of str or bytes. A number as Retry-After counts as seconds.

        Raises:
            PermitMisused: Outside the block, or the second time.
            InvalidOption: The status is not an integer from 0 to 999.
        """
        if self._turn is None:
            raise PermitMisused(f"report outside the permit's block: {self.url}", url=self.url)
        begun = self._outcome
        if begun is not None and (begun.status is not None or begun.failed):
            raise PermitMisused(f"reported twice: {self.url}; one permit is one request", url=self.url)
        services, turn = self._services, self._turn
        turns, recrawl, told = services.turns, services.recrawl, services.listener
        plain = recrawl is None and turns.budgets is None and not turns.detects
        if plain and status not in DEMANDING:
            # Hot path: the outcome of a status alone is ready.
            ready = ORDINARY.get(status) if headers is None and type(status) is int else None
            outcome = ready or reported(status, headers, services.clock.wall)
        else:
            # Read once: they may be pairs of an iterator.
            fields = selected(headers or (), _READ_FIELDS)
            outcome = reported(status, fields, services.clock.wall)
            self._demand = demand(outcome.status, fields)
            if turns.detects and (verdict := refusal(status, fields)).kind in _REFUSALS:  # type: ignore[arg-type]
                outcome = replace(outcome, refused=str(verdict))
            if recrawl is not None:
                self._page = recrawl.reported(self._target, outcome, fields)
            if turns.budgets is not None:
                turns.budgets.announce(turn, body_length(outcome.status, fields))
        if begun is not None:
            outcome = replace(outcome, elapsed_s=begun.elapsed_s, refused=begun.refused or outcome.refused)
        elif turns.policies.timed or told.elapsed_wanted:
            outcome = self._timed(outcome, turn)
        self._outcome = outcome
        if self._lost or turns.anchor is Anchor.FIRST_BYTE:
            if begun is not None and not self._lost:
                # The delay began before the outcome was known: that counts as a first one does.
                turn.settled = False
            turns.settle(turn, self._target, outcome, self._pace)
        if self._demand is not None:
            self._tell(self._demand, status)

    def refused(self, because: Refusal | str) -> None:
        """Count the response as a refusal, whatever its status was: the origin backs off, and its pace is learned from it.

        What `polite.refusal` finds in a body is known only after the report.

        Example:
            permit.report(status=response.status, headers=response.headers)
            body = await response.read()
            if found := polite.refusal(response.status, response.headers, body):
                permit.refused(found)

        Args:
            because: What says so.

        Raises:
            PermitMisused: Outside the block.
            InvalidOption: Nothing says so: a `Refusal` that is false, or an empty text.
        """
        if self._turn is None:
            raise PermitMisused(f"refused outside the permit's block: {self.url}", url=self.url)
        if not because or not isinstance(because, Refusal | str):
            said = f"refused: because must say what refuses {self.url}, got {because!r}"
            raise InvalidOption(said, url=self.url)
        begun = self._outcome or self._timed(_BEGUN, self._turn)
        told = "".join(filter(str.isprintable, str(because)[:_TOLD]))
        self._outcome = replace(begun, refused=told)
        turns = self._services.turns
        if self._lost or turns.anchor is Anchor.FIRST_BYTE:
            turns.settle(self._turn, self._target, self._outcome, self._pace)

    def received(self, octets: int) -> None:
        """Count octets of the response's body in the origin's budget (`PacingPolicy.max_bytes`). May be called for each piece.

        Without it, Content-Length counts. Without a budget it does nothing.

        Raises:
            PermitMisused: Outside the block.
            InvalidOption: `octets` is not an integer >= 0.
        """
        if self._turn is None:
            raise PermitMisused(f"received outside the permit's block: {self.url}", url=self.url)
        integer("received: octets", octets, least=0)
        if (budgets := self._services.turns.budgets) is not None:
            budgets.receive(self._turn, octets)

    def began(self) -> None:
        """Start the delay: the response began, but its status is not known (yet). A later `report` can only lengthen the delay.

        Raises:
            PermitMisused: Outside the block, the second time, or after `report`.
        """
        if self._turn is None:
            raise PermitMisused(f"began outside the permit's block: {self.url}", url=self.url)
        if self._outcome is not None:
            raise PermitMisused(f"began twice, or after its report: {self.url}", url=self.url)
        self._outcome = self._timed(_BEGUN, self._turn)
        turns = self._services.turns
        if self._lost or turns.anchor is Anchor.FIRST_BYTE:
            turns.settle(self._turn, self._target, self._outcome, self._pace)

    def enter(self) -> Coroutine[Any, Any, Self]:
        """Wait for the turn, as `async with` does, but bound to no task: any callback may `leave` it.

        The gate then cannot tell that a task waits for a turn that it holds itself: it waits until the permit is left, or
        `PacingPolicy.max_hold` is over. Raises what `Gate.permit` lists. A cancelled wait loses nothing.
        """
        entering = self.__aenter__()
        self._holder = None
        return entering

    def leave(self, error: BaseException | None = None) -> None:
        """End the permit, as the end of the block does. May be called twice, and from any callback of the event loop.

        If the permit waits for its turn, that is given back when it comes, and `enter` raises PermitMisused.

        Args:
            error: Why no response came. An Exception counts as a failed request, if nothing was reported, unless `sign` raised it
                for a signer that failed.
        """
        turn, self._turn = self._turn, None
        self._stage = ENDED
        if turn is None:
            return
        services = self._services
        turns = services.turns
        self._let_go(turn)
        try:
            if self._outcome is None:
                # Left without a report, perhaps by an exception: a request may have been sent, so the delay runs from now. An
                # error says that no response came, unless it is the signer's; a cancellation, that the crawler gave up.
                failed = isinstance(error, Exception) and not isinstance(error, SignerFailed)
                outcome = Outcome(failed=failed)
                outcome = self._timed(outcome, turn) if turns.policies.timed else outcome
                turns.settle(turn, self._target, outcome, self._pace)
            elif not turn.settled:
                # Whatever the anchor was at the report: it may have changed since.
                turns.settle(turn, self._target, self._outcome, self._pace)
        finally:
            turns.release(turn)
        if self._page is not None and error is None and services.recrawl is not None:
            services.recrawl.remember(self._target, self._page)
        if (on_left := services.listener.on_left) is not None:
            held_s = services.clock.monotonic() - (turn.granted_at or 0.0)
            told = self._outcome or _BEGUN
            on_left(self._target, told.status, told.elapsed_s, max(0.0, held_s))

    def unsent(self) -> None:
        """End the permit and give its turn back: no request was sent, so no delay starts. May be called twice.

        A permit that was not entered ends, too. If it waits for its turn, that is given back when it comes, and `enter` raises
        PermitMisused.

        Raises:
            PermitMisused: A response was reported, or began.
        """
        if self._outcome is not None:
            raise PermitMisused(f"unsent, but a response was reported: {self.url}", url=self.url)
        turn, self._turn = self._turn, None
        self._stage = ENDED
        if turn is None:
            return
        # A turn that was taken back is settled and released already.
        if self._let_go(turn):
            self._services.turns.skip(turn, self._target, "nothing was sent")

    def unread(self) -> None:
        """Remember nothing of the response for `Gate.conditional`: it was not read to its end. May be called twice, until the end.

        An exception that leaves the block does the same, and so does `TaskPermit.retry`.
        """
        if self._page is not None:
            # A 304 to its validators would be of no use.
            self._page = replace(self._page, validators=None)

    # Hot path: a plain function that returns a coroutine saves one frame for each permit.
    def __aenter__(self) -> Coroutine[Any, Any, Self]:
        if self._stage != NEW:
            raise self._entered_twice()
        open_permits = self._services.open_permits
        # Hot path: inlines OpenPermits.current_task.
        task = None if (loop := open_permits.loop) is None else asyncio.current_task(loop)
        self._holder = task = task or open_permits.current_task()
        if task is not None and task in open_permits:
            self._refuse_to_wait_for_itself(task)
        self._stage = ENTERED
        return self._acquire(task)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave(error)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {redact_url(self.url)}: {self._state()}>"

    def _state(self) -> str:
        """How far it is, for `repr`."""
        if self._turn is None:
            return self._stage
        granted = f"granted{', turn lost' if self._lost else ''}"
        if self._outcome is None:
            return granted
        status = self._outcome.status
        return f"{granted}, response began" if status is None else f"{granted}, status {status}"

    def grounds_at(self, origin: Origin) -> Grounds | None:
        """Return what allowed the permit, if that is the origin's rules. No part of the public API."""
        return self._grounds if self._target.origin == origin else None

    def lose(self, turn: Turn) -> None:
        """Take the turn back from the block, which may go on: its report still counts. No part of the public API."""
        self._lost, turns = True, self._services.turns
        self._let_go(turn)
        try:
            if not turn.settled:
                turns.settle(turn, self._target, self._outcome or _BEGUN, self._pace)
        finally:
            turns.release(turn)

    async def _acquire(self, task: asyncio.Task[Any] | None, *, renewed: bool = False) -> Self:
        """Allowed first, then the turn; and allowed still, when the wait was longer than the rules are good for.

        `task` is the one that waits. `renewed`: the permit had a turn before, and gave it back.
        """
        services, target, turns = self._services, self._target, self._services.turns
        on_granted = services.listener.on_granted
        queued_at = 0.0 if on_granted is None else services.clock.monotonic()
        services.waiting.begun += 1
        try:
            while True:
                # Hot path: known rules and a free turn are had without another coroutine.
                if (
                    services.shutdown.begun
                    or turns.declines
                    or turns.operator.stale
                    or (task is not None and task in services.open_permits)
                ):
                    await self._require(task)
                known = services.origins.known.get(target.origin)
                # Inlines OriginRules.suffices.
                if known is None or not known.fresh_from < services.clock.wall() < known.refresh_at:
                    known = await services.learn(target, to_enter=True)
                if len(target.path) > known.rules.quick_length or not known.rules.allows(target.path):
                    known = await self._allowed(known)
                # While it waits, the rules, which may be large, can be forgotten.
                grounds = known.grounds
                del known
                try:
                    turn = turns.take_now(target, pace=grounds.pace)
                    turn = turn or await self._wait(grounds, first=renewed)
                except GateClosed as error:
                    raise services.closed_error(target) from error
                # Something may have been ordered while the rules were fetched.
                ordered = turns.declines and turns.forbidden(target) is not None
                if not (turn.waited or ordered):
                    break
                if not ordered and (still := self._grounds_after(grounds, renewed=renewed)) is not None:
                    services.counters.waited += 1
                    grounds = still
                    break
                renewed = True
                why = "an operator forbids it" if ordered else "the rules were replaced, or became too old,"
                turns.skip(turn, target, f"{why} while it waited")
        except BaseException as error:
            services.wait_failed(target, error)
            # The permit ends, unless it may be entered again.
            self._stage = NEW if self._stage == NEW else ENDED
            raise
        if self._stage == ENDED:
            services.waiting.failed += 1
            turns.skip(turn, target, "its permit ended while it waited")
            raise PermitMisused(f"the permit ended while it waited for its turn: {self.url}", url=self.url)
        try:
            self._hold(turn, grounds)
            services.counters.granted += 1
            if on_granted is not None:
                on_granted(target, services.clock.monotonic() - queued_at, None)
        except BaseException:
            # A journal that cannot be written, what ends the program, or a listener that is not guarded: the block is never
            # entered, so it is never left.
            services.waiting.failed += self._turn is None
            self._stage = ENDED
            self._turn = None
            self._let_go(turn)
            turns.give_back(turn)
            raise
        return self

    async def _require(self, task: asyncio.Task[Any] | None) -> None:
        """Raise an error if the permit must not wait, now that it is known who waits for what."""
        services, target, turns = self._services, self._target, self._services.turns
        services.require_open(target)
        if turns.operator.stale:
            turns.operator.look()
        if turns.declines:
            # Before robots.txt is fetched: that is a request, too.
            services.require_permitted(target)
            turns.require(target, services.origins.known.pace(target.origin))
        if task is not None and task in services.open_permits:
            await turns.meet(target)
            # All scopes can be named now. Perhaps another task waits on behalf of this one.
            if task is asyncio.current_task():
                try:
                    self._refuse_to_wait_for_itself(task)
                except PermitMisused:
                    self._stage = NEW
                    raise

    async def _allowed(self, known: OriginRules) -> OriginRules:
        """Raise Disallowed, or return the rules that allow the URL: those in force when a thread has decided about a long one."""
        known, decision = await self._services.decide(self._target, known)
        if decision is not None and not decision.allowed:
            raise self._services.refusal(self._target, known, decision)
        return known

    def _wait(self, grounds: Grounds, *, first: bool) -> Coroutine[Any, Any, Turn]:
        """Wait for a turn that is not free."""
        services, target, pace = self._services, self._target, grounds.pace
        if PermitDelayed in services.listener.wanted:
            outlook = services.turns.outlook(target, pace)
            if outlook.scope is not None:
                for_s = max(0.0, outlook.ready_at - services.clock.monotonic())
                services.listener(PermitDelayed(target.url, str(outlook.scope), for_s, outlook.because))
        services.waiting.watch(target, services.turns)
        return services.turns.take(target, pace=pace, first=first)

    def _grounds_after(self, grounds: Grounds, *, renewed: bool) -> Grounds | None:
        """Return what allows the URL after a wait: the same grounds, or newer rules; None if the rules must be learned anew."""
        services, target = self._services, self._target
        if services.origins.still_valid(grounds, renewed=renewed):
            return grounds
        newer = services.origins.current(target.origin)
        # If newer rules allow it at the same pace, the turn is the one that they would have given.
        if newer is None or newer.pace != grounds.pace:
            return None
        return newer.grounds if services.decider.allows_now(newer.rules, target.path) else None

    def _tell(self, demand: Demand, status: int) -> None:
        url, origin, told = self.url, self._target.origin.text, self._services.listener
        if demand.price is not None:
            told(PaymentRequired(url, origin, demand.price))
        if demand.challenge is not None:
            told(LicenseRequired(url, origin, status, demand.challenge))

    @property
    def demand(self) -> Demand | None:
        """What the reported response asks for instead of giving the page: a price or a licence. None for nothing."""
        return self._demand

    def _hold(self, turn: Turn, grounds: Grounds) -> None:
        """The block begins, with this turn. Raises StoreFailed if the journal cannot record it; then nothing has changed."""
        services, task = self._services, self._holder
        if services.journal is not None:
            known = services.origins.known.peek(self._target.origin)
            services.journal.granted(self._target, grounds, turn, known)
        self._turn = turn
        self._grounds = grounds
        self._pace = grounds.pace
        # Hot path: inlines HeldTurns.hold.
        held = services.held_turns
        held[turn] = self
        if held.timer is None:
            held.set_timer()
        if task is not None:
            services.open_permits.setdefault(task, {})[self] = None
        if services.turns.declines:
            services.turns.begin(turn, self._target)

    def _let_go(self, turn: Turn) -> bool:
        """End the hold of the turn, and of the task that has entered, if one has. Return whether the turn was still held."""
        services, task = self._services, self._holder
        # A permit that is kept keeps no task, nor what that refers to.
        self._holder = None
        if task is not None and (inside := services.open_permits.get(task)) is not None:
            inside.pop(self, None)
            if not inside:
                del services.open_permits[task]
        return services.held_turns.pop(turn, None) is not None

    def _refuse_to_wait_for_itself(self, task: asyncio.Task[Any]) -> None:
        """Raise PermitMisused for a task whose own permits hold all turns of a scope: it would deadlock."""
        if (outer := self._services.in_the_way(task, self._target)) is not None:
            raise waits_for_itself(outer, self._target)

    def _entered_twice(self) -> PermitMisused:
        said = f"entered twice, or after its end: {self.url}; one permit is one request"
        return PermitMisused(said, url=self.url)

    def _timed(self, outcome: Outcome, turn: Turn) -> Outcome:
        """With the seconds since the grant, for a throttle that uses them."""
        elapsed_s = self._services.clock.monotonic() - (turn.granted_at or 0.0)
        return replace(outcome, elapsed_s=max(0.0, elapsed_s))
