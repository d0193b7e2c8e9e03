"""How long a scope rests after any answer, one reason a class: the user's delay, the file's wishes, the server's slowness."""

from polite.options import checked
from polite.pacing.outcome import Outcome
from polite.pacing.pause import Pause, ThrottleContext


class MinDelay:
    """At least `seconds`, always. Raises InvalidOption."""

    def __init__(self, seconds: float) -> None:
        seconds = checked("min_delay", seconds)
        self.pause = Pause(seconds, f"min_delay {seconds:g} s")

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        """See throttle.Part."""
        return self.pause


class CrawlDelay:
    """What the file's Crawl-delay asks, up to `most` seconds (T3). Raises InvalidOption."""

    def __init__(self, most: float) -> None:
        self._most = checked("max_crawl_delay", most)

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """See throttle.Part."""
        asked = None if given.pace is None else given.pace.crawl_delay
        return None if asked is None else _held(asked, self._most, f"Crawl-delay {asked:g} s")


class RequestRates:
    """The slowest of the file's Request-rates that counts at this hour (UTC), up to `most` seconds (T3). Raises InvalidOption."""

    def __init__(self, most: float) -> None:
        self._most = checked("max_crawl_delay", most)

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """See throttle.Part."""
        rates = () if given.pace is None else given.pace.request_rates
        holding = [rate for rate in rates if rate.holds(given.wall)]
        if not holding:
            return None
        rate = max(holding, key=lambda rate: rate.delay_s)
        return _held(rate.delay_s, self._most, f"Request-rate {rate}")


class Latency:
    """`factor` times as long as the server took to answer, at least `least` and at most `most` seconds.

    A server that is slow is busy: it is left alone for longer. Raises InvalidOption.
    """

    def __init__(self, factor: float, *, least: float = 0.0, most: float = 30.0) -> None:
        self._factor = checked("latency_factor", factor)
        self._least = checked("least", least)
        self._most = checked("max_latency_delay", most)

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """See throttle.Part."""
        if outcome.elapsed_s is None:
            return None
        seconds = min(max(self._factor * outcome.elapsed_s, self._least), self._most)
        return Pause(seconds, f"latency_factor {self._factor:g} times {outcome.elapsed_s:.3g} s of waiting")


def _held(asked_s: float, most_s: float, because: str) -> Pause | None:
    """What is asked, up to a limit; None for what is no wait (a file may hold anything)."""
    if not asked_s > 0:
        return None
    if asked_s > most_s:
        return Pause(most_s, f"{because}, held to max_crawl_delay {most_s:g} s")
    return Pause(asked_s, because)
