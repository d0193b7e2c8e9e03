"""Files made to be slow, measured in steps and not in seconds: calls, octets compared, words of large integers."""

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest

from polite.robots import rule_index
from polite.robots.decision import Disallowed
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.rules import RuleSet
from tests.support import calls_of

AGENT = "User-agent: *\n"
FULL = 512_000

HOSTILE = {
    "thirty stars": AGENT + "Disallow: /" + "a*" * 30 + "b$",
    "ten thousand rules on one prefix": AGENT + "".join(f"Disallow: /shop/item{n}\n" for n in range(10_000)),
    "ten thousand wildcards on one prefix": AGENT
    + "".join(f"Allow: /shop/*/item{n}$\n" for n in range(10_000)),
    "each rule starts the next": AGENT + "".join(f"Disallow: /{'a' * n}\n" for n in range(900)),
    "two thousand user-agent lines": "User-agent: examplebot-x\n" * 2_000
    + "User-agent: examplebot\nDisallow: /a",
    "user-agent lines far apart": ("User-agent: a\n" + "#\n" * 200) * 1_000,
    "one long line of names": "user-agent" * (FULL // 10),
    "one long line of colons": ":" * FULL,
    "nothing but line ends": AGENT + "\r\n\n\r" * (FULL // 8),
    "nothing but comments": AGENT + "#\n" * (FULL // 2),
}
PATHS = ["/", "/" + "a" * 1_999, "/shop/" + "item1/" * 300, "/" + "?a=*%2A%61" * 200]


def ready(body: bytes, dialect: Dialect) -> RuleSet:
    return parse(body, dialect).rules_for("ExampleBot-News/1.0").prepare()


@pytest.fixture(params=[CLASSIC, RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return request.param


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_reading_a_file_takes_steps_by_its_size(body: str, dialect: Dialect):
    octets = body.encode()
    ready(b"", dialect)  # what is made once for a dialect

    taken = calls_of(lambda: ready(octets, dialect))

    # A blank line, one octet, takes three calls at most; all other lines have more octets for each of theirs.
    assert taken <= 300 + 3 * len(octets)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:9])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_question_takes_steps_by_the_length_of_the_path_and_not_of_the_file(
    body: str, path: str, dialect: Dialect
):
    rules = ready(body.encode(), dialect)

    asked = calls_of(lambda: (rules.allows(path), rules.decide(path)))

    assert asked <= 100 + 4 * len(path)


@pytest.mark.parametrize("rules", [900, 9_000])
def test_a_refusal_is_not_worded_before_it_is_read_and_then_within_a_limit(rules: int):
    body = AGENT + "Allow: /*/x\nDisallow: /a\n" + "".join(f"Allow: /*b*{n}$\n" for n in range(rules))
    path = "/a" + "b" * 200
    decision = ready(body.encode(), GOOGLE_2010).decide(path)
    refusals = []

    made = calls_of(lambda: refusals.append(Disallowed(decision, url=f"https://a.test{path}")))
    worded = calls_of(lambda: str(refusals[0]))

    assert made < 1_000
    assert worded < 20_000
    assert str(refusals[0]).endswith("disallowed by Disallow: /a (line 3)")
    assert not decision.undefined


@pytest.mark.parametrize(
    ("rules", "length", "named"), [(900, 9, True), (9_000, 9, False), (900, 9_000, False)]
)
def test_a_conflict_is_named_where_that_takes_few_steps(rules: int, length: int, named: bool):
    body = AGENT + "Allow: /*a\nDisallow: /bbbb\n" + "".join(f"Allow: /{n}\n" for n in range(rules))

    decision = ready(body.encode(), GOOGLE_2010).decide("/bbbb" + "a" * length)

    assert decision.undefined
    assert ("is undefined" in str(decision)) is named


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def in_another_order(rules: int) -> str:
    """Rules that each look for what the path holds, in an order that it does not have."""
    pairs = [(a, b) for a in LETTERS for b in LETTERS]
    return AGENT + "".join(f"Disallow: /*{a}*{b}*{n}\n" for n, (a, b) in enumerate(pairs[:rules]))


@pytest.mark.pure("counts calls, of which compiled code has fewer")
def test_rules_that_nothing_tells_apart_are_walked_together():
    few, many = (ready(in_another_order(rules).encode(), RFC9309) for rules in (300, 600))
    path = "/0123456789" + 2 * LETTERS

    asked = calls_of(lambda: many.allows(path))

    assert asked <= 100 + 10 * len(path)
    assert asked <= 1.5 * calls_of(lambda: few.allows(path))


class Steps:
    """Octets of a path that were compared, and words of large integers that were combined."""

    taken = 0


STEPS = Steps()


@lru_cache(maxsize=100_000)
def occurrences(piece: str, path: str) -> int:
    """How often a piece stands in a path, overlapping."""
    return sum(1 for _ in re.finditer(f"(?={re.escape(piece)})", path))


class CountedPath(str):
    """A path that counts what CPython's fastsearch compares in it, at most."""

    __slots__ = ()

    def find(self, piece, start=0, *_) -> int:
        found = super().find(piece, start)
        octets = (len(self) if found < 0 else found + len(piece)) - start
        simple = len(self) - start < 2_500 or (len(piece) < 100 and len(self) - start < 30_000)
        STEPS.taken += 4 * octets
        if simple and len(piece) > 4:
            # What starts with the same four octets may be compared to its end; all else ends there.
            STEPS.taken += min(octets, occurrences(piece[:4], str(self))) * len(piece)
        return found

    def __contains__(self, piece) -> bool:
        return self.find(piece) >= 0

    def startswith(self, start, *where) -> bool:
        STEPS.taken += len(start)
        return super().startswith(start, *where)


class CountedWords(int):
    """A large integer that counts the words, of 30 bits each, that operations on it go over."""


def _counting(operation: Callable[[int, int], int]) -> Callable[[CountedWords, int], CountedWords]:
    def counted(self: CountedWords, other: int) -> CountedWords:
        result = operation(int(self), int(other))
        STEPS.taken += max(self.bit_length(), result.bit_length()) // 30 + 1
        return CountedWords(result)

    return counted


for _name in ("and", "or", "xor", "rshift", "lshift"):
    setattr(CountedWords, f"__{_name}__", _counting(getattr(operator, f"__{_name}__")))
CountedWords.__rand__ = CountedWords.__and__


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    where = rule_index._where
    monkeypatch.setattr(rule_index, "_where", lambda *given: CountedWords(where(*given)))
    STEPS.taken = 0
    yield STEPS
    occurrences.cache_clear()


def nested(size: int, tail: Callable[[int], str], at_each: int = 24) -> str:
    """Rules of a few at each of many heads, each of which starts the next."""
    lines, number, octets = [AGENT], 0, 0
    while octets < size:
        lines.append(f"Disallow: /{'a' * (number // at_each)}*{tail(number)}\n")
        octets += len(lines[-1])
        number += 1
    return "".join(lines)


CROWDED = {
    "long pieces that start one another": lambda number: "a" * 48 + "b" + "a" * 45 + str(number),
    "a crowd of short pieces": lambda number: f"{LETTERS[number % 26]}*{number}",
}


@pytest.mark.slow("a file of the largest size", rows=["-29990"])
@pytest.mark.parametrize("octets", [2_000, 29_990])
@pytest.mark.parametrize("size", [24_500, 500_000])
@pytest.mark.parametrize("at_each", [24, 40, 100_000])
@pytest.mark.parametrize("tail", CROWDED.values(), ids=CROWDED)
def test_a_question_compares_octets_by_the_path_and_a_small_part_of_the_file(
    tail: Callable[[int], str], at_each: int, size: int, octets: int, counted: Steps
):
    rules = ready(nested(size, tail, at_each).encode(), RFC9309)
    path = CountedPath(("/" + "a" * 1_000 + LETTERS + "a" * octets)[:octets])
    rules.allows(str(path))  # what is made once for long paths
    counted.taken = 0

    rules.allows(path)

    assert counted.taken <= 10_000_000 + octets * (1_000 + size // 4)


def test_a_first_look_at_a_path_is_linear_whatever_its_few_rules_repeat(counted: Steps):
    piece = "ab" * 20 + "c" + "ab" * 28
    few = ready((AGENT + "".join(f"Disallow: /*{piece}{n}\n" for n in range(30))).encode(), RFC9309)
    path = CountedPath("/" + "ab" * 14_990)
    few.allows(str(path))
    counted.taken = 0

    few.allows(path)

    assert counted.taken <= 10_000_000 + len(path) * 300
