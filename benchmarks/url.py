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
    print("us per URL, medians of interleaved rounds; ratio = Target.of / yarl.URL")
    few = _measured("common URLs, 50 hosts", lambda: _common(50, numbers))
    distinct = _measured("common URLs, every host new", lambda: _common(10**9, numbers))
    _measured("URLs to be rewritten, 50 hosts", lambda: _to_rewrite(50, numbers))
    _measured("URLs to be rewritten, every host new", lambda: _to_rewrite(10**9, numbers))
    worst = max(few, distinct)
    print(
        f"limit for common URLs {_LIMIT:.2f}, worst {worst:.2f}: {'held' if worst <= _LIMIT else 'NOT HELD'}"
    )


def _measured(name: str, make: Callable[[], list[str]]) -> float:
    """Return the ratio of the medians. Each round gives both the same new URLs, in alternating order."""
    ours: list[float] = []
    yarls: list[float] = []
    readers: list[tuple[Callable[[str], object], list[float]]] = [(Target.of, ours), (yarl.URL, yarls)]
    for _ in range(_ROUNDS):
        urls = make()
        readers.reverse()
        for read, times in readers:
            times.append(_time(read, urls))
    ratio = statistics.median(ours) / statistics.median(yarls)
    print(
        f"{name:40} polite {statistics.median(ours):6.2f}  yarl {statistics.median(yarls):6.2f}  ratio {ratio:.2f}"
    )
    return ratio


def _time(read: Callable[[str], object], urls: list[str]) -> float:
    # A copy, so that the second parser does not use hashes cached in the same strings.
    fresh = ["".join(list(url)) for url in urls]
    start = time.perf_counter()
    for url in fresh:
        read(url)
    return (time.perf_counter() - start) / len(fresh) * 1e6


def _common(hosts: int, numbers: Iterator[int]) -> list[str]:
    """Return typical links: lower case, ASCII, a few segments, a query on every third."""
    rng = random.Random(next(numbers))
    return [
        f"https://www.shop{rng.randrange(hosts)}.example.com/category/page-{next(numbers)}.html"
        + ("?id=17&sort=price" if number % 3 == 0 else "")
        for number in range(_URLS)
    ]


def _to_rewrite(hosts: int, numbers: Iterator[int]) -> list[str]:
    rng = random.Random(next(numbers))
    tails = ["/a/../b c", "/straße?q=é", "/%7Euser/./x", "/a|b^c"]
    return [
        f"https://www.müller{rng.randrange(hosts)}.example{rng.choice(tails)}{next(numbers)}"
        for _ in range(_URLS)
    ]


if __name__ == "__main__":
    main()
