"""The time from URL to Target, beside yarl. The URLs are distinct, so that yarl's caches do not help."""

import random
import statistics
import time
from collections.abc import Callable, Iterator

import yarl

from polite.origin import Target

_ROUNDS = 15
_URLS = 2_000
_LIMIT = 1.5


def main() -> None:
    numbers = iter(range(10**12))
    print("us of CPU per URL, medians of interleaved rounds; ratio = Target.of / yarl.URL")
    few = _measured("common URLs, 50 hosts", lambda: common(50, numbers))
    distinct = _measured("common URLs, every host new", lambda: common(10**9, numbers))
    _measured("URLs to be rewritten, 50 hosts", lambda: to_rewrite(50, numbers))
    _measured("URLs to be rewritten, every host new", lambda: to_rewrite(10**9, numbers))
    worst = max(few, distinct)
    print(
        f"limit for common URLs {_LIMIT:.2f}, worst {worst:.2f}: {'held' if worst <= _LIMIT else 'NOT HELD'}"
    )


def _measured(name: str, make: Callable[[], list[str]]) -> float:
    """Return the ratio of the medians. Each round gives both the same new URLs, in alternating order."""
    ours, yarls = times(make, _ROUNDS)
    ratio = statistics.median(ours) / statistics.median(yarls)
    print(
        f"{name:40} polite {statistics.median(ours):6.2f}  yarl {statistics.median(yarls):6.2f}  ratio {ratio:.2f}"
    )
    return ratio


def times(make: Callable[[], list[str]], rounds: int) -> tuple[list[float], list[float]]:
    """Return microseconds of CPU per URL in each round, of Target.of and of yarl.URL."""
    ours: list[float] = []
    yarls: list[float] = []
    readers: list[tuple[Callable[[str], object], list[float]]] = [(Target.of, ours), (yarl.URL, yarls)]
    for _ in range(rounds):
        urls = make()
        readers.reverse()
        for read, each in readers:
            each.append(_time(read, urls))
    return ours, yarls


def _time(read: Callable[[str], object], urls: list[str]) -> float:
    # A copy, so that the second parser does not use hashes cached in the same strings.
    fresh = ["".join(list(url)) for url in urls]
    start = time.process_time()
    for url in fresh:
        read(url)
    return (time.process_time() - start) / len(fresh) * 1e6


def common(hosts: int, numbers: Iterator[int]) -> list[str]:
    """Return typical links: lower case, ASCII, a few segments, a query on every third."""
    rng = random.Random(next(numbers))
    return [
        f"https://www.shop{rng.randrange(hosts)}.example.com/category/page-{next(numbers)}.html"
        + ("?id=17&sort=price" if number % 3 == 0 else "")
        for number in range(_URLS)
    ]


def to_rewrite(hosts: int, numbers: Iterator[int]) -> list[str]:
    rng = random.Random(next(numbers))
    tails = ["/a/../b c", "/straße?q=é", "/%7Euser/./x", "/a|b^c"]
    return [
        f"https://www.müller{rng.randrange(hosts)}.example{rng.choice(tails)}{next(numbers)}"
        for _ in range(_URLS)
    ]


if __name__ == "__main__":
    main()
