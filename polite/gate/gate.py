"""The gate that a crawler awaits before each fetch: may I, and now?"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime

from polite.errors import GateClosed, InvalidOption, PoliteError, redact_url
from polite.gate.explanation import Explanation, explained
from polite.gate.permit import Permit
from polite.gate.services import Services
from polite.gate.single_flight import start_later
from polite.gate.sitemaps import Sitemaps, fetch_tdm_file, parsed
from polite.gate.tally import Counters, OriginRefusals
from polite.log import fields, log
from polite.options import instance
from polite.orders import Order
from polite.origin import Origin, Target
from polite.pacing.policy import PacingPolicy
from polite.ports import Listener, Meter
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision, Disallowed
from polite.robots.parse import Robots
from polite.sitemaps.entry import SitemapPolicy
from polite.terms.tdm import TdmFile


class Gate:
    """Decides two things about a URL: whether robots.txt allows it (`check`), and when its turn is (`permit`).

    Made by `polite.open_gate`. All tasks of one event loop may share a gate.

    Attributes:
        services: What permits and frontiers need of the gate. No part of the public API.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            async with gate.permit("https://example.com/about") as permit:
                ...  # fetch permit.request_url, and report the response
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        # By scopes: while a charge is on its way, another would add nothing.
        self._charges: dict[tuple[Hashable, ...], asyncio.Task[None]] = {}

    async def check(self, url: str) -> Decision:
        """Return whether robots.txt, and the operator, allow the URL. Fetches robots.txt if necessary; takes no turn for the URL.

        Inside a permit's block, rules of the permit's own origin that expired meanwhile still decide.

        Raises:
            InvalidURL: The URL cannot be fetched.
            GateClosed: The gate was closed.
            Overloaded: Too many origins are in back-off, or too many requests wait.
            PermitMisused: Inside a permit whose turn the fetch of robots.txt would need.
        """
        services, target = self.services, Target.of(url)
        services.require_open(target)
        if services.turns.operator.stale:
            services.turns.operator.look()
        if services.turns.declines and (forbidden := services.turns.forbidden(target)) is not None:
            return forbidden.decision
        try:
            known = services.origins.current(target.origin) or await services.learn(target)
        except Disallowed as error:
            # All of the origin is held.
            return error.decision
        if len(target.path) <= known.rules.quick_length:
            return known.rules.decide(target.path)
        known, decision = await services.decide(target, known)
        return known.rules.decide(target.path) if decision is None else decision

    def permit(self, url: str) -> Permit:
        """Return a permit. `async with gate.permit(url) as permit:` waits for the turn; fetch `permit.url` inside, and report.

        A cancelled wait loses nothing.

        Raises:
            InvalidURL: At once.
            Disallowed: On entering, as all that follow: robots.txt disallows the URL.
            RobotsUnreachable: A Disallowed that may pass: robots.txt could not be fetched.
            OriginDeclined: The pacing policy permits no more requests to the origin.
            GateClosed: The gate was closed.
            Overloaded: Too many origins are in back-off, or too many requests wait.
            PermitMisused: The task holds the turn that it would wait for.
        """
        return Permit(self.services, Target.of(url))

    async def acquire(self, url: str) -> Permit:
        """Wait for the turn of a URL, and return its permit, bound to no task. Call `permit.leave()` when the request has ended.

        For where no block fits, such as between callbacks. Prefer `async with gate.permit(url)` elsewhere: it always leaves, and
        notices a task that waits for itself. A cancelled wait loses nothing. A permit that is never left blocks its origin until
        `PacingPolicy.max_hold` is over.

        Example:
            permit = await gate.acquire("https://example.com/about")
            transfer = start(permit.url)  # whatever sends the request
            transfer.on_end(permit.leave)

        Raises:
            InvalidURL, Disallowed, RobotsUnreachable, OriginDeclined, GateClosed, Overloaded, PermitMisused: As `permit`, and
                entering it.
        """
        return await self.permit(url).enter()

    async def conditional(self, url: str) -> dict[str, str]:
        """Return the header fields of a conditional request: If-None-Match and If-Modified-Since; none if nothing is known.

        They are what the last report of this URL said, in this run or, with a file as store, in an earlier one. Send them only if
        you have what came then: the server answers 304, without a body, if the page has not changed.

        Raises:
            InvalidURL: The URL cannot be fetched.
            InvalidOption: The gate was opened without `open_gate(recrawl=RecrawlPolicy())`.
            GateClosed: The gate was closed.
            StoreFailed: The store cannot be used.
        """
        services, target = self.services, Target.of(url)
        services.require_open(target)
        if services.recrawl is None:
            needs = "conditional needs open_gate(recrawl=RecrawlPolicy()): without it nothing is remembered"
            raise InvalidOption(needs, url=target.url)
        return await services.recrawl.conditional(target)

    def charge(self, url: str) -> None:
        """Delay a URL's scopes as after a permit, since a request was already sent: by a browser that followed a redirect, say.

        It checks no rules, waits for nothing and counts nothing. The delay starts now. On a shared store, other processes learn of
        it now if this process holds the URL's homes. Otherwise the homes are taken in the background, and the delay starts anew
        then; the same holds for addresses that must be looked up. After the gate was closed, it does nothing.

        Raises:
            InvalidURL: The URL cannot be fetched.
        """
        services, target = self.services, Target.of(url)
        if services.shutdown.begun:
            return
        services.turns.delayed(target, services.origins.known.pace(target.origin))
        if services.turns.owns(target):
            return
        scopes = tuple(services.turns.scopes_of(target))
        if scopes not in self._charges:
            charge = start_later(lambda: self._charge_later(target), name=f"polite charge {target.origin}")
            self._charges[scopes] = charge
            charge.add_done_callback(lambda _: self._charges.pop(scopes, None))

    async def _charge_later(self, target: Target) -> None:
        """Delay scopes that could not be named yet, or were paced by another process."""
        services = self.services
        try:
            await services.turns.meet(target)
            await services.turns.pacer.own(services.turns.scopes_of(target))
        except GateClosed:
            return
        except PoliteError as error:
            extra = fields("charge_not_shared", origin=target.origin, error=error)
            text = "a request that was sent to %s delays only this process: %s"
            log.warning(text, target.origin, error, extra=extra)
            return
        services.turns.delayed(target, services.origins.known.pace(target.origin))

    async def explain(self, url: str) -> Explanation:
        """Return everything that decides about the URL now: the rule, the file's age, the delay, the next turn.

        Raises what `check` raises.
        """
        services, target = self.services, Target.of(url)
        services.require_open(target)
        known = await services.learn(target)
        await services.turns.meet(target)
        return await explained(services, target, known)

    async def robots(self, url: str) -> Robots | None:
        """Return the robots.txt that decides about the URL's site, as `polite.usage` takes it. Fetches it if necessary.

        None if there is none, or if none can be had: then `check` disallows all. Each call parses the file again: keep the result
        for the pages of the site.

        Raises what `check` raises.
        """
        target = Target.of(url)
        self.services.require_open(target)
        known = await self.services.learn(target)
        # Its signals are for `usage`.
        return await parsed(known, lambda robots: robots.signals_for(self.agent))

    async def tdm_file(self, url: str) -> TdmFile:
        """Fetch the `/.well-known/tdmrep.json` of the URL's site, as `polite.usage` takes it. Keep it: each call fetches it again.

        It is fetched if robots.txt allows it, in its turn, and so is each redirect. 524,288 octets count, and the redirects and
        the seconds of FetchPolicy. A file that may be there and could not be fetched or read (a network failure, a 429, a 5xx,
        broken JSON) reserves everything; `problem` says why.

        Raises what `permit` raises, except for Disallowed.
        """
        target = Target.of(url)
        self.services.require_open(target)
        return await fetch_tdm_file(self.services, target.origin)

    def sitemaps(
        self,
        origin: str | Origin,
        *,
        files: Iterable[str] | None = None,
        since: datetime | None = None,
        policy: SitemapPolicy | None = None,
    ) -> Sitemaps:
        """Return the entries of a site's sitemaps, for `async for entry in gate.sitemaps("https://example.com"):`.

        Each file is fetched in its turn, with the gate's User-Agent, if robots.txt allows it.

        Args:
            origin: The site, or any URL of it.
            files: The sitemaps to fetch, instead of those that the site's robots.txt names, or else /sitemap.xml.
            since: Only entries and sitemaps that may have changed after this: those with an older `lastmod` are left out. It needs
                a time zone.
            policy: Limits.

        Raises:
            InvalidURL: The origin, or one of the files, cannot be fetched.
            InvalidOption: `since` has no time zone, or an option has the wrong type.
        """
        if since is not None:
            _require_zone(since)
        if isinstance(files, str):
            said = f"files={redact_url(files)!r}: a sequence of URLs is needed, such as a list of one"
            raise InvalidOption(said)
        if policy is not None and not isinstance(policy, SitemapPolicy):
            raise InvalidOption(f"policy must be a SitemapPolicy, got {policy!r}")
        return Sitemaps(
            self.services,
            origin if isinstance(origin, Origin) else Origin.of(origin),
            None if files is None else [Target.of(url) for url in files],
            since,
            SitemapPolicy() if policy is None else policy,
        )

    @property
    def agent(self) -> UserAgent:
        """The user agent whose rules the gate obeys. The client must send `agent.header`."""
        return self.services.origins.agent

    @property
    def signs(self) -> bool:
        """Whether it has a signer (`open_gate(signer=...)`): then a client sends the fields of `permit.sign` with each request."""
        return self.services.downloads.signatures is not None

    @property
    def pacing(self) -> PacingPolicy:
        """The pacing policy in force. Assign another to change it: `gate.pacing = gate.pacing.override(...)`.

        Delays that run already stay as long as they are. `scopes` cannot change while the gate is open. Raises InvalidOption.
        """
        return self.services.turns.policies.policy

    @pacing.setter
    def pacing(self, policy: PacingPolicy) -> None:
        self.services.turns.repace(instance("pacing", policy, PacingPolicy))
        self.services.held_turns.set_timer()

    @property
    def counters(self) -> Counters:
        """A copy of the counts since the gate was opened."""
        return replace(self.services.counters)

    def refusals(self, window: float | None = None) -> list[OriginRefusals]:
        """Return how many of its requests each origin refused, the most refused first: at most 1,000, those that did so last.

        Example:
            for each in gate.refusals(window=3_600.0):
                print(each, f"{each.per_1000:.0f} per 1,000")

        Args:
            window: Count the last so many seconds, 1 to 21,600, in steps of ten minutes. By default all since the first refusal.

        Raises:
            InvalidOption: The window is out of range.
        """
        return self.services.turns.refusals.report(self.services.clock.wall(), window)

    @property
    def refusing(self) -> int:
        """How many origins have refused a request, at most 1,000."""
        return len(self.services.turns.refusals.rows)

    @property
    def waiting(self) -> int:
        """How many permits wait for rules or their turn now. The tasks of a frontier that wait are no permits yet."""
        return self.services.waiting.now(self.services.counters.granted)

    @property
    def inside(self) -> int:
        """How many permits have a turn now: granted, and not left, given back or lost. A frontier's count from their grant."""
        return len(self.services.held_turns)

    @property
    def queued(self) -> int:
        """How many tasks wait in the gate's frontiers. On a shared store these are the tasks of the whole crawl."""
        return self.services.queued

    @property
    def known_origins(self) -> int:
        """How many origins' rules are remembered now; `RobotsPolicy.max_origins` is the limit."""
        return len(self.services.origins.known)

    @property
    def memory_used(self) -> int:
        """About how many octets the remembered rules and their files take; `RobotsPolicy.max_memory` is the limit.

        Large rules that were forgotten count while a `Decision` refers to them.
        """
        return self.services.origins.known.memory

    # The operator's orders.

    def hold(
        self,
        pattern: str,
        *,
        because: str,
        until: float | datetime | None = None,
        for_: float | None = None,
        by: str | None = None,
    ) -> Awaitable[Order]:
        """Have all requests to these URLs wait: permits, tasks of frontiers and, for whole origins, robots.txt.

        It is in force when this returns: also in other processes on the same store, within a second (a file) or two (a server), and
        after a restart. Await the result to know that the store has it. A request whose permit was granted before may still go.

        Example:
            await gate.hold("*.example.com", for_=3_600, because="their operator called: disk full")

        Args:
            pattern: An origin such as "https://example.com", a domain with all hosts below it ("*.example.com"), or the beginning
                of URLs ("https://example.com/search").
            because: Why, for the log and for `orders`.
            until: When it ends by itself: Unix time, or a datetime with a time zone. By default when it is released.
            for_: For how long, instead (seconds).
            by: Who orders it. By default user and host of this process.

        Raises:
            InvalidOption: At once: an argument has the wrong form.
            Overloaded: At once: 10,000 orders stand already.
            StoreFailed: When it is awaited: other processes do not know the order. It is in force in this one.
        """
        operator = self.services.turns.operator
        return operator.give(operator.order("hold", pattern, because=because, until=until, for_=for_, by=by))

    def forbid(self, pattern: str, *, because: str, by: str | None = None) -> Awaitable[Order]:
        """Have no request go to these URLs: `Disallowed` is raised, with `Reason.OPERATOR` and the text.

        Tasks of frontiers are refused. A permit that waits for its turn learns of it when that comes. In force as for `hold`.

        Args:
            pattern: As for `hold`.
            because: Why.
            by: Who orders it. By default user and host of this process.

        Raises:
            InvalidOption, Overloaded, StoreFailed: As for `hold`.
        """
        operator = self.services.turns.operator
        return operator.give(operator.order("forbid", pattern, because=because, by=by))

    def release(
        self, pattern: str, *, because: str = "released", by: str | None = None
    ) -> Awaitable[list[Order]]:
        """End the orders of this very pattern. In force when this returns, elsewhere as for `hold`. Await it for these orders.

        Args:
            pattern: The pattern of the orders, as it was given.
            because: Why.
            by: Who orders it. By default user and host of this process.

        Raises:
            InvalidOption: At once: no order has this pattern; the message names those that stand.
            StoreFailed: When it is awaited.
        """
        return self.services.turns.operator.release(pattern, because=because, by=by)

    @property
    def orders(self) -> list[Order]:
        """The orders that stand, the oldest first."""
        operator = self.services.turns.operator
        if operator.stale:
            operator.look()
        return sorted(operator.orders.rows.values(), key=lambda order: order.at)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass events to one more listener from now on, as `open_gate(listener=...)` does. Return what ends that.

        Each listener receives the events that its attribute `events` names, or all.

        Raises:
            InvalidOption: It cannot be called, or its `events` are not classes of polite.events.
        """
        if not callable(listener):
            raise InvalidOption(f"listener must be a Listener of polite.ports, got {listener!r}")
        return self.services.listener.add(listener)

    def measure(self, meter: Meter) -> Callable[[], None]:
        """Pass the times of each permit to a meter from now on, as numbers. Return what ends that.

        Raises:
            InvalidOption: It lacks a method of `polite.ports.Meter`.
        """
        for method in ("granted", "left"):
            if not callable(getattr(meter, method, None)):
                raise InvalidOption(f"meter must be a Meter of polite.ports, got {meter!r}")
        return self.services.listener.measure(meter)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the gate closes; at once if it is closed.

        The object of a bound method is held weakly: it can be collected, and is not called then. What a callback raises is logged.
        """
        self.services.shutdown.on_begin(callback)

    async def close(self) -> None:
        """Close the gate. Waiting calls get GateClosed; permits already granted may be finished. May be called twice."""
        self.services.held_turns.close()
        self.services.shutdown.begin()
        async with AsyncExitStack() as closing:
            for part in (self.services.turns.operator, self.services.origins, self.services.turns.pacer):
                closing.push_async_callback(part.close)
            charges = list(self._charges.values())
            for charge in charges:
                charge.cancel()
            await asyncio.gather(*charges, return_exceptions=True)

    def __repr__(self) -> str:
        counters, state = self.services.counters, "closed, " if self.services.shutdown.begun else ""
        ended = f"{counters.granted} granted, {counters.refused} refused"
        return f"<Gate {self.agent.tokens[0]}: {state}{self.waiting} waiting, {self.inside} inside, {ended}>"


def _require_zone(since: object) -> None:
    if not isinstance(since, datetime) or since.utcoffset() is None:
        raise InvalidOption(f"since must be a datetime with a time zone, got {since!r}")
