"""RateLimit and RateLimit-Policy: the quotas that a server says it keeps (draft-ietf-httpapi-ratelimit-headers-10).

The draft is of 27 September 2025. Both fields are lists of structured fields (RFC 9651): `RateLimit-Policy: "d";q=100;w=60` names
a quota of 100 requests in 60 seconds, and `RateLimit: "d";r=3;t=20` says that 3 are left for the next 20 seconds. A field that is
malformed is ignored as a whole, as the draft requires; so is one that is longer, or has more quotas, than any honest one.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from polite.http.structured_fields import BareItem, Item, Malformed, parse_list
from polite.origin import Origin

# Characters of a field with all its lines.
_LONGEST = 4_096
_MOST_QUOTAS = 16
# Characters of a name.
_LONGEST_NAME = 64
# "request" is in the drafts before -08.
_REQUESTS = frozenset({"request", "requests"})
# A spent quota whose server names no time: many windows are a minute.
_UNKNOWN_RESET_S = 60.0
# Times are whole seconds, and may be rounded down.
_ROUNDING_S = 1.0
# Origins that are remembered; beyond it, the one that told its quotas longest ago is forgotten until it tells them again.
_MOST_ORIGINS = 100_000
# Quotas of one origin. A server may have one for each part of its site.
_MOST_KEPT = 8
# Requests that a server may have counted before it told its policy: robots.txt, and pages that were in flight with the one whose
# response told it.
_EARLIER = 4
# How long a policy that no response repeats holds at least (seconds). What is left of a quota holds until that is reset.
_KEPT_S = 3_600.0


class Quota(NamedTuple):
    """One item of RateLimit-Policy.

    Attributes:
        name: The policy's name, and its partition key if it has one.
        amount: How much may be used in the window (`q`).
        window_s: The window (`w`), or None.
        of_requests: Whether requests are counted, and not octets, say (`qu`).
    """

    name: str
    amount: int
    window_s: int | None
    of_requests: bool


class Remainder(NamedTuple):
    """One item of RateLimit.

    Attributes:
        name: The policy's name, and its partition key if it has one.
        left: What is left of the quota (`r`).
        reset_s: Seconds until more is there (`t`), or None.
    """

    name: str
    left: int
    reset_s: int | None


class Gap(NamedTuple):
    """A delay between requests that keeps a quota.

    Attributes:
        name: The policy's name.
        seconds: The delay.
        for_s: Seconds for which it applies.
        because: The reason.
        lasting: Whether the policy itself needs it, and not what is left of it now.
    """

    name: str
    seconds: float
    for_s: float
    because: str
    lasting: bool


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What both fields of one response say.

    >>> said = RateLimits.of(['"d";r=0;t=30'], ['"d";q=100;w=60'])
    >>> said.wait_s
    31.0
    >>> [gap.seconds for gap in said.gaps]
    [0.6]

    Attributes:
        quotas: The policies.
        remainders: What is left of each.
    """

    quotas: tuple[Quota, ...] = ()
    remainders: tuple[Remainder, ...] = ()

    @classmethod
    def of(cls, limits: Iterable[str], policies: Iterable[str]) -> "RateLimits | None":
        """Return what header fields say, or None if they say nothing that can be used.

        Args:
            limits: The lines of RateLimit.
            policies: The lines of RateLimit-Policy.
        """
        quotas = tuple(
            Quota(name, amount, _whole(given, "w"), given.get("qu", "requests") in _REQUESTS)
            for name, given in _items(policies)
            if (amount := _whole(given, "q")) is not None
        )
        remainders = tuple(
            Remainder(name, left, _whole(given, "t"))
            for name, given in _items(limits)
            if (left := _whole(given, "r")) is not None
        )
        return cls(quotas, remainders) if quotas or remainders else None

    @property
    def wait_s(self) -> float | None:
        """The longest time until a spent quota has something left, in seconds; None if none is spent."""
        waits = [self._reset_s(each) + _ROUNDING_S for each in self.remainders if not each.left]
        return max(waits, default=None)

    @property
    def gaps(self) -> list[Gap]:
        """The delays between requests that keep each quota: the window by the quota, and the time left by what is left."""
        found = []
        for quota in self.quotas:
            if quota.of_requests and (window_s := quota.window_s):
                seconds = window_s / max(1, quota.amount)
                because = f"RateLimit-Policy: {quota.amount} in {window_s} s"
                found.append(Gap(quota.name, seconds, window_s, because, lasting=True))
        for name, left, reset_s in self.remainders:
            # The first policy of this name says what is counted.
            counts = next((each.of_requests for each in self.quotas if each.name == name), True)
            if left and reset_s and counts:
                because = f"RateLimit: {left} left for {reset_s} s"
                found.append(Gap(name, reset_s / left, reset_s, because, lasting=False))
        return found

    def _reset_s(self, remainder: Remainder) -> float:
        if remainder.reset_s is not None:
            return remainder.reset_s
        window_s = next((each.window_s for each in self.quotas if each.name == remainder.name), None)
        return _UNKNOWN_RESET_S if window_s is None else window_s


def _items(lines: Iterable[str]) -> Iterator[tuple[str, Mapping[str, BareItem]]]:
    """Yield the name of each policy of a field and its parameters; none if the field is malformed or too long.

    A name is a String or a Token, with its partition key: each part of a site may have a quota of its own.
    """
    # RFC 9651, 4.2: the lines of a field are joined with commas.
    text = ", ".join(lines)
    try:
        members = parse_list(text) if len(text) <= _LONGEST else []
    except Malformed:
        return
    for item in members[:_MOST_QUOTAS]:
        if isinstance(item, Item) and isinstance(item.value, str):
            key = item.parameters.get("pk")
            yield (item.value if key is None else f"{item.value} {key!r}")[:_LONGEST_NAME], item.parameters


def _whole(parameters: Mapping[str, BareItem], name: str) -> int | None:
    """Return a parameter that is an integer >= 0, or None."""
    value = parameters.get(name)
    return value if type(value) is int and value >= 0 else None


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
        while len(known) > _MOST_KEPT:
            del known[min(known, key=lambda key: known[key][1].seconds)]
        if not known:
            del self.by_origin[origin.text]
        while len(self.by_origin) > _MOST_ORIGINS:
            self.by_origin.popitem(last=False)

    def slowest(self, origin: Origin, now: float) -> Gap | None:
        """Return the longest delay that a quota of the origin needs now."""
        known = self.by_origin.get(origin.text, {})
        for key in [key for key, (until, _) in known.items() if until <= now]:
            del known[key]
        if not known:
            self.by_origin.pop(origin.text, None)
        return max((gap for _, gap in known.values()), key=lambda gap: gap.seconds, default=None)


def _first(gap: Gap) -> Gap:
    """Return the gap of the first window of a policy whose server does not tell what is left of it."""
    amount = round(gap.for_s / gap.seconds)
    seconds = gap.for_s / max(1, amount - _EARLIER)
    because = f"{gap.because}, some of which were perhaps used before"
    return gap._replace(seconds=seconds, because=because, lasting=False)
