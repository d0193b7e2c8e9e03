"""Exponential back-off: the one formula for refusals, circuits, robots.txt retries and postponed origins."""

# 2.0 ** 60 already exceeds every limit that an option accepts.
_MOST_DOUBLINGS = 60


def exponential(first_s: float, times: int, most_s: float) -> float:
    """Return `first_s` doubled `times` times, at most `most_s`.

    >>> [exponential(5.0, times, 60.0) for times in (0, 1, 2, 10)]
    [5.0, 10.0, 20.0, 60.0]
    """
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), most_s)
