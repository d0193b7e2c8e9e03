"""Long computations let other threads run, in the compiled form too, where only a call of a Python function does that.

The moments of each module are counted, so that those of one do not hide that another has none.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.parse import parse
from polite.robots.rules import RuleSet

# So many rules are indexed between two moments.
AT_A_TIME = 1_024

Switches = Callable[[Callable[[], object]], Counter[str]]


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> Switches:
    """Count the moments at which threads may switch while something is computed, by module."""
    moments: Counter[str] = Counter()
    for module in ("groups", "rules", "rule_index"):
        monkeypatch.setattr(
            f"polite.robots.{module}.let_threads_switch", lambda module=module: moments.update([module])
        )

    def counted(compute: Callable[[], object]) -> Counter[str]:
        moments.clear()
        compute()
        return moments.copy()

    return counted


def bound(body: bytes) -> RuleSet:
    return parse(body).rules_for("ExampleBot/1.0")


@pytest.mark.parametrize(
    ("body", "octets_between"),
    [(filled(WORST["real-like"]), 16_384), (b"User-agent: other\n" * 28_000, 8_193)],
    ids=["rules", "user-agent lines"],
)
def test_a_file_is_read_in_parts(switches: Switches, body: bytes, octets_between: int):
    assert switches(lambda: bound(body))["groups"] >= len(body) // octets_between - 1


# A rule set of many rules is indexed when it is bound: rules by head; then six steps over all heads, each of some milliseconds at
# most, and the end. What keys tell apart is filed in parts. An automaton has two sets of states, and one for each bit of an octet.
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a head each", lambda rules: 6 + 1),
        ("real-like", lambda rules: 6 + 1 + rules // AT_A_TIME),
        ("letters in order", lambda rules: 6 + 1 + 2 + 7),
    ],
)
def test_many_rules_are_sorted_and_indexed_in_parts(switches, name, parts):
    body = filled(WORST[name])
    rules = len(bound(body))

    found = switches(lambda: bound(body))

    # Between normal forms, lengths, the sort, and what is made of it.
    assert found["rules"] == 5
    assert found["rule_index"] >= -(-rules // AT_A_TIME) + parts(rules)


@pytest.mark.slow("a large file", rows=["letters in order-32"])
@pytest.mark.parametrize(("name", "octets_between"), [("letters in order", 32), ("heads of one another", 25)])
def test_a_long_path_is_decided_in_parts(switches: Switches, name: str, octets_between: int):
    rules = bound(filled(WORST[name])).prepare()

    found = [switches(lambda path=path: rules.decide(path))["rule_index"] for path in worst_paths(20_000)]

    assert max(found) >= 20_000 // octets_between


KEYS = [f"k{n:05}" for n in range(300)]


@pytest.mark.parametrize(
    ("body", "path", "most"),
    [
        # Keys of one length begin with each of 52 letters, and the path has all of these.
        (filled(WORST["many stars, anchored"]), worst_paths(20_000)[0], 52),
        ("\n".join(["User-agent: *", *(f"Disallow: /*{key}*/end" for key in KEYS)]).encode(), "/" + "".join(KEYS), 300),
        (b"User-agent: *\n" + b"".join(b"Disallow: /*%b%d\n" % (b"a" * 20, n) for n in range(20)), "/" + "a" * 2_000, 20),
    ],
    ids=["many keys", "the rules of many keys", "repetitive rules without a key"],
)  # fmt: skip
def test_wildcard_rules_are_tried_in_parts(switches: Switches, body: bytes, path: str, most: int):
    rules = bound(body).prepare()

    assert switches(lambda: rules.decide(path))["rule_index"] >= most
