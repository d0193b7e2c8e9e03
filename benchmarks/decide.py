"""`python -m benchmarks.decide`: the time of one decision, beside other engines in the same process."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.corpus import HEADER, Case, corpus, large
from benchmarks.peers import GOOGLE, Peer, decisions, peers
from benchmarks.stopwatch import race, row
from polite.robots.parse import parse
from polite.robots.rules import RuleSet

_ROUNDS = 7
_BODY = 512_000


def main() -> None:
    """Print the tables."""
    beside = peers()
    what, cases = corpus()
    print(f"\n{what}: us per decision, medians of {_ROUNDS} interleaved rounds; all files parsed and indexed")
    _compare(
        cases, beside, {"allows": 5.0, "decide with rule and line": 2.5, "robots.decide(agent, url)": 1.0}
    )
    for rules, wild, target in ((1_000, 0.1, 25.0), (10_000, 0.1, 100.0), (10_000, 0.0, 250.0)):
        print(f"\n{rules:,} rules, {wild:.0%} with wildcards, a tenth Allow (made by benchmarks/corpus.py)")
        _compare([large(rules, wild=wild)], beside[:1], {"allows": target})
    _growth()
    _worst(beside)


def _compare(cases: list[Case], beside: list[Peer], targets: dict[str, float]) -> None:
    count = sum(len(case.decisions) for case in cases)
    runners = ours(cases) | {peer.name: deciding(peer, cases) for peer in beside}
    taken = race(runners, _ROUNDS)
    for name, seconds in taken.items():
        print(f"  {name:32} {seconds / count * 1e6:8.3f} us")
    for name, target in targets.items():
        print("  " + row(f"{name}, against {beside[0].name}", taken[beside[0].name] / taken[name], target))


def ours(cases: list[Case]) -> dict[str, Callable[[], None]]:
    files = [(parse(case.body), case.decisions) for case in cases]
    bound = [(file.rules_for(agent), path) for file, pairs in files for agent, path in pairs]
    urls = [(file, agent, f"https://example.com{path}") for file, pairs in files for agent, path in pairs]

    def allows() -> None:
        for rules, path in bound:
            rules.allows(path)

    def decide() -> None:
        for rules, path in bound:
            rule = rules.decide(path).rule
            if rule is not None:
                rule.line  # noqa: B018 - the read is measured

    def decide_url() -> None:
        for file, agent, url in urls:
            file.decide(agent, url)

    return {"allows": allows, "decide with rule and line": decide, "robots.decide(agent, url)": decide_url}


def deciding(peer: Peer, cases: list[Case]) -> Callable[[], None]:
    files = [(peer.read(case.body.decode("utf-8", "replace")), decisions(case)) for case in cases]

    def decide() -> None:
        for file, pairs in files:
            peer.decide(file, pairs)

    return decide


def _growth() -> None:
    sizes = (100, 1_000, 10_000)
    cases = {size: large(size, wild=0.0) for size in sizes}
    taken = race({str(size): ours([case])["allows"] for size, case in cases.items()}, 31)
    each = {size: taken[str(size)] / len(cases[size].decisions) * 1e6 for size in sizes}
    print("\nGrowth of allows, literal rules: " + ", ".join(f"{n:,}: {us:.3f} us" for n, us in each.items()))
    growth = each[10_000] / each[100]
    print(
        f"  from 100 to 10,000: {growth:.2f} times (target at most 3: {'held' if growth <= 3 else 'NOT HELD'})"
    )


def filled(make: Callable[[int], str]) -> bytes:
    """Return 500 KiB of rules made by `make`."""
    found, size, number = ["user-agent: *"], 13, 0
    while size < _BODY - 40:
        found.append(make(number))
        size += len(found[-1]) + 1
        number += 1
    return "\n".join(found).encode()


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIGURES = "0123456789"


def _letters(number: int, digits: int = 2) -> str:
    """Return a number written in letters."""
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, len(_LETTERS))
        text += _LETTERS[digit]
    return text


def _word(number: int) -> str:
    """Return two letters followed by digits; in the paths below, all digits precede the letters."""
    number, figure = divmod(number, len(_FIGURES))
    return _letters(number) + _FIGURES[figure]


def _some_letters(number: int) -> str:
    """Return about half of the letters in order, chosen by the number."""
    return "".join(letter for at, letter in enumerate(_LETTERS) if number * 2_654_435_761 >> at % 29 & 1)


# Files of 500 KiB with nothing but slow wildcard rules: hardly two are equal, and a path below contains
# all their pieces in the wrong order.
WORST = {
    "single letters": lambda n: "allow:/*" + "*".join(_word(n)),
    "single letters, headed": lambda n: "allow:/-*" + "*".join(_word(n)),
    "one key in all": lambda n: "allow:/*?aaa*" + "*".join(_word(n)),
    "many stars": lambda n: "allow:/" + "*a" * 30 + "*" + "*".join(_word(n)),
    "many stars, anchored": lambda n: "allow:/" + "*a" * 60 + f"*{_word(n)}$",
    "distinct words": lambda n: f"allow:/*{_letters(n, 3)}word",
    "heads of one another": lambda n: f"allow:/{'a' * (n % 900)}*{_word(n)}",
    "letters in order": lambda n: f"Disallow: /*{'*'.join(_some_letters(n))}*{n % 10}",
    "a head each": lambda n: f"Disallow: /f{n * 7_919 % 99_991}*/p",
    "real-like": lambda n: f"Disallow: /*/folder{n}/*?page=",
}


def worst_paths(length: int) -> list[str]:
    """Return paths of this length that cost hostile rules the most time."""
    letters = (_LETTERS * (length // len(_LETTERS) + 1))[: length - 30]
    return [
        f"/-{_FIGURES}{letters}",
        f"/-{_FIGURES}?aaa{letters}",
        f"/-{_FIGURES}{'a' * (length - 12 - len(_LETTERS))}{_LETTERS}",
        "/" + "a" * (length - 1),
        ("/" + "?aaaword" * length)[:length],
        ("/" + "folder1/?page=" * length)[:length],
    ]


class Worst(NamedTuple):
    """Milliseconds: polite's index, its short and long paths; Protego's parse and long paths; Google's short paths.

    A long path takes Google's parser up to a minute.
    """

    ready: float
    short: float
    long: float
    protego_read: float
    protego_long: float
    google_short: float


def _worst(beside: list[Peer]) -> None:
    print("\nThe worst 500 KiB: nothing but wildcard rules, and paths made for them (ms; the slowest path)")
    columns = ("parse, bind, index", "100 chars", "2,000 chars", "Protego: parse", "2,000", "Google: 100")
    print(f"  {'':26}" + "".join(f"{column:>20}" for column in columns))
    google = next((peer for peer in beside if peer.name == GOOGLE), None)
    found = {name: measured(filled(make), beside[0], google) for name, make in WORST.items()}
    for name, figures in found.items():
        print(f"  {name:26}" + "".join(f"{figure:20.2f}" for figure in figures))
    for at, (what, limit) in enumerate((("parse, bind, index", 70), ("100 characters", 10), ("2,000", 181))):
        slowest = max(figures[at] for figures in found.values())
        print(
            f"  slowest, {what}: {slowest:.2f} ms (target {limit}: {'held' if slowest <= limit else 'NOT HELD'})"
        )
    slower = [name for name, each in found.items() if each.long > each.google_short]
    print(f"  slower at 2,000 characters than Google's C++ at 100: {', '.join(slower) or 'none'}")


def measured(body: bytes, protego: Peer, google: Peer | None) -> Worst:
    text = body.decode()
    ready = min(_ms(lambda: parse(body).rules_for(HEADER).prepare()) for _ in range(3))
    rules = parse(body).rules_for(HEADER).prepare()
    short, long = (max(_decision_ms(rules, path) for path in worst_paths(length)) for length in (100, 2_000))
    read = _ms(lambda: protego.read(text))
    theirs = _longest_ms(protego, text, 2_000), _longest_ms(google, text, 100) if google else math.inf
    return Worst(ready, short, long, read, *theirs)


def _longest_ms(peer: Peer, text: str, length: int) -> float:
    file = peer.read(text)
    pairs = [[("examplebot", f"https://example.com{path}")] for path in worst_paths(length)]
    return max(_ms(partial(peer.decide, file, each)) for each in pairs)


def _decision_ms(rules: RuleSet, path: str) -> float:
    # `decide` as well: for a file without Disallow, `allows` examines no rule.
    return max(min(_ms(partial(work, path)) for _ in range(3)) for work in (rules.allows, rules.decide))


def _ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main()
