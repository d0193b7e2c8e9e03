"""What is remembered of origins: the rules that hold for each, in bounded memory that never forgets a running back-off."""

import math
from collections import OrderedDict
from dataclasses import dataclass

from polite.errors import Overloaded
from polite.origin import Origin
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds for an origin between `fresh_from` and `fresh_until` (wall seconds): the rules that bind our agent.

    `snapshot`: what they come from. `crawl_delay`: the rest that the file asks for (seconds), or None; a Request-rate of 1/5 is
    one of 5.
    """

    rules: RuleSet
    snapshot: Snapshot
    crawl_delay: float | None
    fresh_from: float
    fresh_until: float

    @classmethod
    def of(cls, rules: RuleSet, snapshot: Snapshot) -> "Standing":
        """The standing of a snapshot and what was read from it."""
        return cls(rules, snapshot, _asked_delay(rules), *snapshot.fresh_between)

    def fresh(self, now: float) -> bool:
        """Whether it holds now (wall seconds)."""
        return self.fresh_from < now < self.fresh_until


def _asked_delay(rules: RuleSet) -> float | None:
    """T3: the larger of what Crawl-delay and Request-rate ask. A rate's window is not looked at, which is slower at worst."""
    rate = None if rules.request_rate is None else rules.request_rate.delay_s
    return max((delay for delay in (rules.crawl_delay, rate) if delay is not None), default=None)


class Standings:
    """At most `limit` origins; the one asked for longest ago is forgotten first.

    An origin whose server failed, and which must not be asked again yet, is set aside instead; of these there are at most `limit`
    too, and beyond that new origins are refused.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By text: a str knows its hash, an Origin must be asked for it, and this is looked into for each page.
        self._known: OrderedDict[str, Standing] = OrderedDict()
        self._backing_off: dict[str, Standing] = {}
        self._earliest_retry = math.inf

    def __len__(self) -> int:
        return len(self._known) + len(self._backing_off)

    def get(self, origin: Origin) -> Standing | None:
        """What was last known, fresh or not; the origin counts as asked for."""
        key = origin.text
        standing = self._known.get(key)
        if standing is None:
            return self._backing_off.get(key)
        self._known.move_to_end(key)
        return standing

    def replaced(self, origin: Origin, standing: Standing) -> bool:
        """Whether something newer than `standing` is known. To be forgotten is not to be replaced."""
        return self._known.get(origin.text, standing) is not standing

    def put(self, origin: Origin, standing: Standing, now: float) -> None:
        """Remember it, in place of what was known; `now` is in wall seconds."""
        self._known.pop(origin.text, None)
        self._backing_off.pop(origin.text, None)
        self._known[origin.text] = standing
        while len(self._known) > self._limit:
            oldest, forgotten = self._known.popitem(last=False)
            if forgotten.snapshot.failures and forgotten.fresh(now):
                self._backing_off[oldest] = forgotten
                self._earliest_retry = min(self._earliest_retry, forgotten.fresh_until)

    def admit(self, origin: Origin, now: float) -> None:
        """Raise Overloaded for a new origin while as many as may be are set aside: rather that than forget one of them."""
        if (
            len(self._backing_off) < self._limit
            or self._known.get(origin.text)
            or self._backing_off.get(origin.text)
        ):
            return
        if now >= self._earliest_retry:
            self._backing_off = {o: s for o, s in self._backing_off.items() if s.fresh(now)}
            retries = (standing.fresh_until for standing in self._backing_off.values())
            self._earliest_retry = min(retries, default=math.inf)
        if len(self._backing_off) >= self._limit:
            raise Overloaded(
                f"{origin}: {self._limit} other origins failed and may not be asked again yet; "
                f"RobotsPolicy.max_origins={self._limit} is the limit",
                url=str(origin),
            )
