"""The hours at which an operator lets a site be visited, in a time zone of theirs; combined with the site's own (Visit-time)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from polite.errors import InvalidOption
from polite.pace import VisitTime

_HOURS = re.compile(r"(\d?\d):(\d\d)\s*-\s*(\d?\d):(\d\d)(?:\s+(\S{1,64}))?", re.ASCII)
_DAY_MIN = 24 * 60
# Hours that do not meet in so many looks, of which two are a day, nor in a later season, do not meet at all.
_LOOKS, _SEASONS_S = 24, (0.0, 91 * 86_400.0, 182 * 86_400.0, 273 * 86_400.0)


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of each day in a time zone. They may include midnight.

    >>> Hours.of("22:00-06:00 UTC").opens_in_s(7 * 3_600.0) / 3_600
    15.0

    Attributes:
        text: As they were given.
        start_min: Minutes after midnight.
        length_min: How many minutes these are.
        zone: The time zone; summer time is kept.
    """

    text: str
    start_min: int
    length_min: int
    zone: tzinfo

    @classmethod
    def of(cls, text: object, option: str = "hours") -> "Hours":
        """Read hours such as "01:00-05:00 Europe/Berlin"; without a zone they are in UTC. Raises InvalidOption."""
        match = _HOURS.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 100 else None
        ends = [] if match is None else [60 * int(match[at]) + int(match[at + 1]) for at in (1, 3)]
        wrong = match is None or max(ends) > _DAY_MIN or max(int(match[2]), int(match[4])) > 59
        if match is None or wrong or ends[0] == ends[1] or ends[0] == _DAY_MIN:
            must = 'must be two times and a zone, such as "01:00-05:00 Europe/Berlin"'
            raise InvalidOption(f"{must}, got {text!r}", option=option)
        try:
            zone = UTC if match[5] in {None, "UTC"} else ZoneInfo(match[5])
        except (KeyError, ValueError, OSError) as error:
            known = "a time zone of the IANA database, as in Europe/Berlin; a machine without it needs `pip install tzdata`"
            raise InvalidOption(f"must end with {known}; got {text!r}", option=option) from error
        return cls(match[0], ends[0], (ends[1] - ends[0]) % _DAY_MIN or _DAY_MIN, zone)

    def opens_in_s(self, wall: float) -> float:
        """Return the seconds from `wall` (Unix time) to the next start; 0 within the hours."""
        local = datetime.fromtimestamp(wall, self.zone)
        if (local.hour * 60 + local.minute - self.start_min) % _DAY_MIN < self.length_min:
            return 0.0
        start = time(*divmod(self.start_min, 60), tzinfo=self.zone)
        days = (datetime.combine(local.date() + timedelta(day), start).timestamp() for day in range(3))
        return next(at for at in days if at > wall) - wall

    def __str__(self) -> str:
        return self.text


def opens_in_s(wall: float, *hours: Hours | VisitTime) -> float:
    """Return the seconds from `wall` (Unix time) until all of these hours are open; infinite if they never are at one time.

    >>> opens_in_s(0.0, Hours.of("01:00-05:00"), VisitTime(3 * 60, 9 * 60)) / 3_600
    3.0
    """
    for later_s in _SEASONS_S:
        at = wall + later_s
        for _ in range(_LOOKS):
            wait_s = max(each.opens_in_s(at) for each in hours)
            if not wait_s:
                return at - wall
            # All hours begin with a second.
            at = float(round(at + wait_s))
    return float("inf")
