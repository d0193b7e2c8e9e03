"""HeldHomes: the homes that a shared frontier has tasks of, with their active origins and tasks in flight."""

from collections.abc import Iterator

from polite.stores.redis.home import Home


class HeldOrigin:
    """An active origin of a held home.

    Attributes:
        number: Its number among all that this process had; ActiveOrigins knows it by that.
    """

    __slots__ = ("home", "number", "text")

    def __init__(self, number: int, text: str, home: "HeldHome") -> None:
        self.number: int = number
        self.text: str = text
        self.home: HeldHome = home


class HeldHome:
    """A home with active origins, or with tasks in flight.

    Attributes:
        origins: By the origin's text.
        in_flight: Numbers of its tasks that were given to workers.
        failures: How often in a row the rules of an origin could not be had.
    """

    __slots__ = ("failures", "home", "in_flight", "origins")

    def __init__(self, home: Home) -> None:
        self.home: Home = home
        self.origins: dict[str, HeldOrigin] = {}
        self.in_flight: set[int] = set()
        self.failures: dict[str, int] = {}

    @property
    def needed(self) -> bool:
        return bool(self.origins or self.in_flight)


class HeldHomes:
    """All of them, by name."""

    def __init__(self) -> None:
        self._homes: dict[str, HeldHome] = {}
        self._origins: dict[int, HeldOrigin] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._homes)

    def __iter__(self) -> Iterator[HeldHome]:
        return iter(self._homes.values())

    def get(self, name: str) -> HeldHome | None:
        return self._homes.get(name)

    def origin(self, number: int) -> HeldOrigin | None:
        return self._origins.get(number)

    def hold(self, home: Home) -> HeldHome:
        """Return the home's entry, a new one if it is not held by this `home`."""
        held = self._homes.get(home.name)
        if held is None or held.home is not home:
            if held is not None:
                self.drop(held)
            held = self._homes[home.name] = HeldHome(home)
        return held

    def activate(self, held: HeldHome, text: str) -> HeldOrigin:
        """Add an active origin."""
        self._last += 1
        origin = held.origins[text] = self._origins[self._last] = HeldOrigin(self._last, text, held)
        return origin

    def deactivate(self, origin: HeldOrigin) -> None:
        """Remove an active origin. Its home stays as long as tasks are in flight."""
        self._origins.pop(origin.number, None)
        origin.home.origins.pop(origin.text, None)

    def drop(self, held: HeldHome) -> list[int]:
        """Remove a home; return the numbers of its active origins."""
        if self._homes.get(held.home.name) is held:
            del self._homes[held.home.name]
        numbers = [origin.number for origin in held.origins.values()]
        for number in numbers:
            del self._origins[number]
        held.origins.clear()
        return numbers
