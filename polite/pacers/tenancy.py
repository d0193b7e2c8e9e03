"""The time for which a process holds a home: what is left of the last owner's delays, and the scopes used since."""

from collections.abc import Hashable

from polite.pacing.homes import Home, HomeState, SavedScope, TakenHome
from polite.pacing.turn import Provisional

# Scopes of a home that are remembered before idle ones are forgotten.
_MANY_SCOPES = 1_000


# The homes under which a turn was granted.
Tenure = tuple[Home, ...]


class Tenancy:
    """What a pacer knows of one home while it is held. Times are monotonic seconds.

    Attributes:
        home: The home; to be bound before a scope is used.
        tenure: The home as the only one of a turn.
        taken_at: When it was taken.
        clean: Whether the last owner left it with a state that says all: what this process counted before is outdated.
        scopes: The scopes used since, each with the delay that its last request named.
        saved: What the last owner left of scopes that were not used since, by name.
    """

    __slots__ = (
        "_free_at",
        "_many",
        "_unclean_since",
        "clean",
        "home",
        "saved",
        "scopes",
        "taken_at",
        "tenure",
    )

    home: Home
    tenure: Tenure

    def __init__(
        self, now: float, free_s: float, unclean_s: float | None, saved: dict[str, SavedScope], *, clean: bool
    ) -> None:
        self.tenure = ()
        self.taken_at: float = now
        self.clean: bool = clean
        self._free_at = now + free_s
        self._unclean_since = None if unclean_s is None else now - unclean_s
        self.saved: dict[str, SavedScope] = saved
        self.scopes: dict[Hashable, Provisional | None] = {}
        self._many = _MANY_SCOPES

    @classmethod
    def of(cls, taken: TakenHome, state: HomeState | None, now: float) -> "Tenancy":
        """Return the tenancy of a home that was just taken. Without a readable state, a request may have been sent a moment ago."""
        age_s = taken.age_s
        clean = taken.clean and age_s is not None and state is not None
        if state is None:
            state, age_s = HomeState(), 0.0
            unclean_s: float | None = 0.0
        elif taken.clean or age_s is None:
            unclean_s = None if state.unclean_s is None else state.unclean_s + (age_s or 0.0)
        else:
            unclean_s = age_s
        # What is left when it is taken. After a lease that ended, the state is older than its age says: that is too long a delay.
        saved = {
            each.name: each._replace(rest_s=max(0.0, each.rest_s - (age_s or 0.0))) for each in state.scopes
        }
        return cls(now, taken.free_s, unclean_s, saved, clean=clean)

    def bind(self, home: Home) -> None:
        """Name the home itself."""
        self.home = home
        self.tenure = (home,)

    @property
    def usable(self) -> bool:
        """Whether the home may give a turn now."""
        return self.home.good and not self.home.closing

    @property
    def unclean(self) -> bool:
        """Whether a request may have been sent by an owner that ended without a word."""
        return self._unclean_since is not None

    @property
    def lost(self) -> bool:
        """Whether the home is not held any more, as far as is known."""
        return bool(self.tenure) and not self.home.good

    def free_at(self, delay_s: float) -> float:
        """Return from when a scope with this delay is free, as far as the last owner is concerned."""
        if self._unclean_since is None:
            return self._free_at
        return max(self._free_at, self._unclean_since + delay_s)

    def left_s(self, now: float) -> float:
        """Return what is left of the delay of the home as a whole (seconds)."""
        return max(0.0, self._free_at - now)

    def unclean_s(self, now: float, most_s: float) -> float | None:
        """Return the seconds since a request may have been sent that no owner knows of; None if there is none, beyond `most_s`."""
        if self._unclean_since is None or now - self._unclean_since > most_s:
            return None
        return max(0.0, now - self._unclean_since)

    def unused(self, now: float) -> list[SavedScope]:
        """Return what the last owner left of scopes that were not used since."""
        passed = now - self.taken_at
        return [each._replace(rest_s=max(0.0, each.rest_s - passed)) for each in self.saved.values()]

    @property
    def crowded(self) -> bool:
        """Whether so many scopes are remembered that idle ones are to be forgotten."""
        return len(self.scopes) > self._many

    def grow(self) -> None:
        """Idle scopes were forgotten: allow as many as are left again, so that the next time is far."""
        self._many = max(_MANY_SCOPES, 2 * len(self.scopes))
