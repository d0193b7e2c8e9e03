"""Everything that decided about one URL, as values and as text for people."""

from dataclasses import dataclass
from datetime import UTC, datetime

from polite.gate.rules_cache import OriginRules
from polite.gate.services import Services
from polite.origin import Target
from polite.pacing.outcome import Pause
from polite.pacing.policy import Override
from polite.pacing.turn import Outlook
from polite.robots.decision import Decision
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import Snapshot

# For a wait of so many seconds, the time of its end is shown.
_LONG_S = 600.0
# The greatest Unix time that a datetime can have.
_LATEST = 253_402_300_799.0
# A delay that began less than this ago (seconds) is not shown.
_SHORT_S = 0.1


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that decides about a URL now (`Gate.explain`). `str()` of it is readable text.

    Attributes:
        target: The URL.
        decision: Whether it may be fetched, and by which rule.
        snapshot: The robots.txt result behind the decision, with its age.
        pause: The origin's delay after an ordinary response, and its reason.
        outlook: The scope that delays the URL now, if any.
        wait_s: Seconds until its turn could come, if no other request is ahead.
        now: Wall seconds of the explanation.
        request_rate: The file's slowest Request-rate, if it is a longer delay than Crawl-delay.
        attempt: A refresh ahead of time that failed.
        held_s: Seconds for which that scope has delayed the URL already.
        declined: Why the pacing policy permits no more requests to the origin; None if it does.
        budget: What was spent of the origin's budget; empty if it has none.
        overrides: The options that differ there from the policy's, and for which origins they were given; empty if there are none.

    Example:
        print(await gate.explain("https://example.com/about"))
    """

    target: Target
    decision: Decision
    snapshot: Snapshot
    pause: Pause
    outlook: Outlook
    wait_s: float
    now: float
    request_rate: str = ""
    attempt: Snapshot | None = None
    held_s: float | None = None
    declined: str | None = None
    budget: str = ""
    overrides: str = ""

    def __str__(self) -> str:
        return "\n".join((self.target.url, *(f"  {line}" for line in self._lines())))

    def _lines(self) -> list[str]:
        lines = [str(self.decision), self._robots()]
        if self.snapshot.failures:
            lines.append(self._failures())
        if self.attempt is not None:
            left = max(0.0, self.attempt.expires_at - self.now)
            failed = f"failed {_times(self.attempt.failures)}: {self.attempt.access.reason.value}"
            lines.append(f"refreshed ahead of time, {failed}; not again for {left:.0f} s")
        lines += [
            f"delay: {self.pause.seconds:g} s between requests ({self.pause.because})",
            self._turn() if self.declined is None else f"turn: never. {self.declined}",
        ]
        if self.overrides:
            lines.append(f"policy: {self.overrides}")
        return [*lines, f"budget: {self.budget}"] if self.budget else lines

    def _robots(self) -> str:
        access = self.snapshot.access
        status = "" if access.status is None else f", status {access.status}"
        hops = "" if not access.hops else ", 1 redirect" if access.hops == 1 else f", {access.hops} redirects"
        if not isinstance(access, Found) and access.probes:
            hops += f", and {access.probes} other pages requested"
        age = self.now - self.snapshot.fetched_at
        left = self.snapshot.expires_at - self.now
        inferred = f"; {access.reason.option} inferred it" if access.reason is Reason.INFERRED_MISSING else ""
        # A failure that cannot pass is not good for any time.
        good_for = f", good for {left:.0f} s more" if access.reason.may_pass else ""
        result = f"{access.reason.value}{status}{hops}{inferred}"
        return f"robots.txt: {result}; requested {age:.0f} s ago{good_for}"

    def _failures(self) -> str:
        since, count = self.snapshot.unreachable_since, self.snapshot.failures
        failed = f"failed {_times(count)}"
        if since is not None and count > 1:
            failed += f" in {_span(self.now - since)}"
        if not self.snapshot.access.reason.may_pass:
            failed = "waiting cannot help"
        if self.snapshot.good is None:
            copy = "there is no earlier copy"
        elif self.decision.reason is Reason.UNREACHABLE:
            copy = "the last good copy does not count (RobotsPolicy.keep_stale)"
        else:
            copy = "the last good copy decides"
        return f"{failed}; {copy}{self._what_failed()}"

    def _what_failed(self) -> str:
        access = self.snapshot.access
        if not isinstance(access, Unreachable):
            return ""
        detail = f" ({access.detail})" if access.detail else ""
        after = f"{detail}; after {access.elapsed_s:.1f} s on the network"
        # The detail of a blocked address names its own option.
        named = access.reason is Reason.ADDRESS_REFUSED and access.detail
        return after if named else f"{after}; {access.option} changes it"

    def _turn(self) -> str:
        ahead = f", {self.outlook.waiting} waiting ahead" if self.outlook.waiting else ""
        if self.outlook.scope is None:
            return f"turn: now{ahead}"
        because = f" ({self.outlook.because})" if self.outlook.because else ""
        until = f", at {_shown(self.now + self.wait_s)}" if self.wait_s >= _LONG_S else ""
        held = f" for {self.held_s:.1f} s already" if (self.held_s or 0.0) >= _SHORT_S else ""
        return f"turn: in {self.wait_s:.1f} s{until}, held by {self.outlook.scope}{held}{because}{ahead}"


async def explained(services: Services, target: Target, known: OriginRules) -> Explanation:
    """Return what decides about the URL now, by these rules of its origin. Nothing is fetched, and no turn taken."""
    turns = services.turns
    outlook = turns.outlook(target, known.pace)
    now = services.clock.monotonic()
    declined = turns.declined(target.origin, known.pace)
    forbidden = turns.forbidden(target)
    decision = forbidden.decision if forbidden else await services.decider.decide(known.rules, target.path)
    return Explanation(
        target=target,
        decision=decision,
        snapshot=known.snapshot,
        pause=turns.pause(target.origin, known.pace),
        outlook=outlook,
        wait_s=max(0.0, outlook.ready_at - now),
        held_s=None if outlook.since is None else max(0.0, now - outlook.since),
        now=services.clock.wall(),
        request_rate=_slowest_rate(known),
        attempt=known.attempt,
        declined=None if declined is None else declined.because,
        overrides=_overrides(turns.policies.overrides(target.origin)),
        budget="" if turns.budgets is None else turns.policies.budget(target.origin),
    )


def _overrides(overrides: list[Override]) -> str:
    """Return the options of each override that applies, the most specific first."""
    return "; ".join(
        f"{', '.join(f'{name}={value!r}' for name, value in options)} for {origin}"
        for origin, options in overrides
    )


def _slowest_rate(known: OriginRules) -> str:
    rate = known.rules.request_rate
    if rate is None or rate.delay_s <= (known.rules.crawl_delay or 0.0):
        return ""
    return f"{rate.requests}/{rate.seconds:g}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3_600:.0f} hours" if seconds < 86_400 else f"{seconds / 86_400:.1f} days"


def _shown(wall: float) -> str:
    if wall > _LATEST:
        # A Crawl-delay of any length may be obeyed.
        return "a time after the year 9999"
    return f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d %H:%M:%S} UTC"
