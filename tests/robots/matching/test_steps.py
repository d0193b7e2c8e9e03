"""Files made to be slow, measured in calls, and where those do not tell, in seconds; and when other threads may run."""

import time
from collections import Counter
from itertools import islice

import pytest

from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, RFC9309, Dialect
from polite.robots.parse import parse
from tests.support import calls_of, slowness

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


def ready(body, dialect):
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
def test_a_question_takes_steps_by_the_length_of_the_path_and_not_of_the_file(body: str, path: str, dialect):
    rules = ready(body.encode(), dialect)
    assert calls_of(lambda: (rules.allows(path), rules.decide(path))) <= 100 + 4 * len(path)


@pytest.mark.parametrize(
    ("rules", "length", "named"), [(900, 9, True), (9_000, 9, False), (900, 9_000, False)]
)
def test_a_conflict_is_named_where_that_takes_few_steps(rules: int, length: int, named: bool):
    body = AGENT + "Allow: /*a\nDisallow: /bbbb\n" + "".join(f"Allow: /{n}\n" for n in range(rules))
    decision = ready(body.encode(), GOOGLE_2010).decide("/bbbb" + "a" * length)
    assert decision.undefined
    assert ("is undefined" in str(decision)) is named


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


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def nested(tail, at_each):
    """Rules of a few at each of many heads, each of which starts the next."""
    rows = (f"Disallow: /{'a' * (n // at_each)}*{tail(n)}\n" for n in range(100_000))
    return (AGENT + "".join(islice(rows, 6_000)))[:FULL]


PIECE = "ab" * 20 + "c" + "ab" * 28


@pytest.mark.slow("files of the largest size", rows=["40"])
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (
            nested(lambda n: "a" * 48 + "b" + "a" * 45 + str(n), 40),
            "/" + "a" * 1_000 + LETTERS + "a" * 28_963,
        ),
        (nested(lambda n: "a" * 48 + "b" + "a" * 45 + str(n), 24), "/" + "a" * 29_989),
        (nested(lambda n: f"{LETTERS[n % 26]}*{n}", 24), "/" + "a" * 1_000 + LETTERS + "a" * 28_963),
        (AGENT + "".join(f"Disallow: /*{PIECE}{n}\n" for n in range(30)), "/" + "ab" * 14_990),
    ],
    ids=[
        "long pieces, 40 at a head",
        "long pieces",
        "a crowd of short pieces",
        "few that repeat what a path does",
    ],
)
def test_a_question_of_the_longest_path_takes_a_small_part_of_the_time_of_all_comparisons(body, path):
    rules = ready(body.encode(), RFC9309)
    rules.allows(path)  # what is made once for long paths
    started = time.process_time()
    rules.allows(f"{path}x")
    # 0.7 s at most where this was written; a matcher that tries each rule by itself, or goes back, needs a minute.
    assert time.process_time() - started < 7.0 * slowness()


# Long computations let other threads run, in the compiled form too, where only a call of a Python function does that.
# The moments of each module are counted, so that those of one do not hide that another has none.

KEYS = [f"k{n:05}" for n in range(300)]
OF_MANY_KEYS = "\n".join(["User-agent: *", *(f"Disallow: /*{key}*/end" for key in KEYS)]).encode()
WITHOUT_A_KEY = b"User-agent: *\n" + b"".join(b"Disallow: /*%b%d\n" % (b"a" * 20, n) for n in range(20))


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often threads may switch, by module."""
    moments: Counter[str] = Counter()
    for module in ("groups", "rules", "rule_index"):
        switch = lambda module=module: moments.update([module])  # noqa: E731
        monkeypatch.setattr(f"polite.robots.{module}.let_threads_switch", switch)
    return moments


# A rule set of many rules is indexed when it is bound, 1,024 at a time: rules by head; then six steps over all heads, and the end.
# What keys tell apart is filed in parts. An automaton has two sets of states, and one for each bit of an octet.
@pytest.mark.parametrize(
    ("body", "least"),
    [
        (b"User-agent: other\n" * 28_000, (60, 0, 0)),
        (filled(WORST["a head each"]), (31, 5, 24 + 6 + 1)),
        (filled(WORST["real-like"]), (31, 5, 16 + 6 + 1 + 15)),
        (filled(WORST["letters in order"]), (31, 5, 8 + 6 + 1 + 2 + 7)),
    ],
    ids=["user-agent lines", "a head each", "real-like", "letters in order"],
)
def test_a_file_is_read_sorted_and_indexed_in_parts(moments, body: bytes, least: tuple[int, ...]):
    rules = parse(body).rules_for("ExampleBot/1.0")
    for module, number in zip(("groups", "rules", "rule_index"), least, strict=True):
        assert moments[module] >= number
    moments.clear()
    assert len(list(rules.matching("/f1/a"))) <= len(rules) <= moments["rules"] + 1


@pytest.mark.slow("a large file", rows=["letters in order"])
@pytest.mark.parametrize(
    ("body", "paths", "least"),
    [
        (filled(WORST["letters in order"]), worst_paths(20_000), 20_000 // 32),
        (filled(WORST["heads of one another"]), worst_paths(20_000), 20_000 // 25),
        # Keys of one length begin with each of 52 letters, and the path has all of these.
        (filled(WORST["many stars, anchored"]), worst_paths(20_000)[:1], 52),
        (OF_MANY_KEYS, ["/" + "".join(KEYS)], 300),
        (WITHOUT_A_KEY, ["/" + "a" * 2_000], 20),
    ],
    ids=[
        "letters in order",
        "heads of one another",
        "many keys",
        "the rules of many keys",
        "repetitive rules",
    ],
)
def test_a_long_path_is_decided_in_parts(moments: Counter[str], body: bytes, paths: list[str], least: int):
    rules, found = parse(body).rules_for("ExampleBot/1.0").prepare(), []
    for path in paths:
        moments.clear()
        rules.decide(path)
        found.append(moments["rule_index"])
    assert max(found) >= least
