"""The quotas that servers told lately: they hold for requests of an origin whose responses do not repeat them."""

from collections import OrderedDict

from polite.origin import Origin
from polite.pacing.rate_limits import Gap, RateLimits

# Origins that are remembered; beyond it, the one that told its quotas longest ago is forgotten until it tells them again.
_MOST_ORIGINS = 100_000
# Quotas of one origin. A server may have one for each part of its site.
_MOST_QUOTAS = 8
# Requests that a server may have counted before it told its policy: robots.txt, and pages that were in flight with the one whose
# response told it.
_EARLIER = 4
# How long a policy that no response repeats holds at least (seconds). What is left of a quota holds until that is reset.
_KEPT_S = 3_600.0


class KnownQuotas:
    """The delays that keep the quotas of each origin. `now` is monotonic seconds.

    >>> known, origin = KnownQuotas(), Origin.of("https://example.com")
    >>> known.learn(origin, RateLimits.of([], ['"burst";q=5;w=1', '"hour";q=100;w=3600']), now=0.0)
    >>> known.slowest(origin, now=1.0).seconds
    37.5
    >>> known.slowest(origin, now=3_600.0) is None
    True

    Attributes:
        by_origin: What is remembered, by the origin's text; nearly always empty.
    """

    def __init__(self) -> None:
        self.by_origin: OrderedDict[str, dict[tuple[str, bool], tuple[float, Gap]]] = OrderedDict()

    def learn(self, origin: Origin, said: RateLimits, now: float) -> None:
        """Remember what a response said, instead of what an earlier one said of the same policies."""
        known = self.by_origin.setdefault(origin.text, {})
        self.by_origin.move_to_end(origin.text)
        before = {name for name, _ in known}
        # A policy that counts something else than requests by now, or a quota that is spent, needs no gap any more.
        for quota in said.quotas:
            known.pop((quota.name, True), None)
            if not quota.of_requests:
                known.pop((quota.name, False), None)
        for remainder in said.remainders:
            known.pop((remainder.name, False), None)
        told = {remainder.name for remainder in said.remainders}
        for gap in said.gaps:
            if gap.lasting and gap.name not in told and gap.name not in before:
                known[gap.name, False] = (now + gap.for_s, _first(gap))
            kept_s = max(gap.for_s, _KEPT_S) if gap.lasting else gap.for_s
            known[gap.name, gap.lasting] = (now + kept_s, gap)
        while len(known) > _MOST_QUOTAS:
            del known[min(known, key=lambda key: known[key][1].seconds)]
        if not known:
            del self.by_origin[origin.text]
        while len(self.by_origin) > _MOST_ORIGINS:
            self.by_origin.popitem(last=False)

    def slowest(self, origin: Origin, now: float) -> Gap | None:
        """Return the longest delay that a quota of the origin needs now."""
        known = self.by_origin.get(origin.text)
        if known is None:
            return None
        for key in [key for key, (until, _) in known.items() if until <= now]:
            del known[key]
        if not known:
            del self.by_origin[origin.text]
            return None
        return max((gap for _, gap in known.values()), key=lambda gap: gap.seconds)


def _first(gap: Gap) -> Gap:
    """Return the gap of the first window of a policy whose server does not tell what is left of it."""
    amount = round(gap.for_s / gap.seconds)
    seconds = gap.for_s / max(1, amount - _EARLIER)
    return gap._replace(
        seconds=seconds, because=f"{gap.because}, some of which were perhaps used before", lasting=False
    )
