"""Long computations let other threads run, in the compiled form too, where only a call of a Python function does that.

The moments of each module are counted, so that those of one do not hide that another has none.
"""

from collections import Counter

import pytest

from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.parse import parse

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
def test_a_file_is_read_sorted_and_indexed_in_parts(
    moments: Counter[str], body: bytes, least: tuple[int, ...]
):
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
    rules = parse(body).rules_for("ExampleBot/1.0").prepare()

    found = []
    for path in paths:
        moments.clear()
        rules.decide(path)
        found.append(moments["rule_index"])

    assert max(found) >= least
