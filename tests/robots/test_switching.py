"""Long computations let other threads run, in the compiled form too, where only a call of a Python function does that.

The moments of each module are counted, so that those of one do not hide that another has none.
"""

from collections import Counter
from collections.abc import Callable
from math import ceil

import pytest

from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.parse import parse
from polite.robots.rules import RuleSet

PACKAGE = "polite.robots"
MODULES = (
    "sections",
    "rules",
    "matching.ranking",
    "matching.rule_index",
    "matching.keyword_index",
    "matching.shift_and",
)
# So many rules are indexed between two moments.
AT_A_TIME = 1_024

Switches = Callable[[Callable[[], object]], Counter[str]]


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> Switches:
    """Count the moments at which threads may switch while something is computed, by module."""
    moments: Counter[str] = Counter()
    for module in MODULES:
        name = module.rpartition(".")[2]
        monkeypatch.setattr(
            f"{PACKAGE}.{module}.let_threads_switch", lambda name=name: moments.update([name])
        )

    def counted(compute: Callable[[], object]) -> Counter[str]:
        moments.clear()
        compute()
        return moments.copy()

    return counted


def bound(body: bytes) -> RuleSet:
    return parse(body).rules_for("ExampleBot/1.0")


def test_a_file_of_rules_is_read_in_parts(switches: Switches):
    body = filled(WORST["real-like"])

    assert switches(lambda: bound(body))["sections"] >= len(body) // 16_384


def test_a_file_of_user_agent_lines_is_read_in_parts(switches: Switches):
    body = b"User-agent: other\n" * 28_000

    assert switches(lambda: parse(body).rules_for("ExampleBot/1.0"))["sections"] >= len(body) // 8_192 - 1


# A rule set of many rules is indexed when it is bound.


def test_many_rules_are_sorted_in_parts(switches: Switches):
    found = switches(lambda: bound(filled(WORST["distinct words"])))

    # Between normal forms, lengths, the sort, and what is made of it.
    assert (found["ranking"], found["rules"]) == (4, 1)


@pytest.mark.parametrize("name", ["distinct words", "a head each"])
def test_many_rules_are_indexed_by_their_heads_in_parts(switches: Switches, name: str):
    body = filled(WORST[name])
    rules = len(bound(body))

    # Rules by head; then six steps over all heads, each of some milliseconds at most, and the end.
    assert switches(lambda: bound(body))["rule_index"] == ceil(rules / AT_A_TIME) + 6 + 1


def test_many_rules_are_filed_under_keys_in_parts(switches: Switches):
    body = filled(WORST["real-like"])
    rules = len(bound(body))

    assert switches(lambda: bound(body))["keyword_index"] >= rules // AT_A_TIME


def test_an_automaton_is_built_in_parts(switches: Switches):
    # Two sets of states, and one for each bit of an octet.
    assert switches(lambda: bound(filled(WORST["letters in order"])))["shift_and"] >= 2 + 7


@pytest.mark.slow("a large file", rows=["letters in order-shift_and-32"])
@pytest.mark.parametrize(
    ("name", "module", "octets_between"),
    [("letters in order", "shift_and", 32), ("heads of one another", "rule_index", 25)],
)
def test_a_long_path_is_decided_in_parts(switches: Switches, name: str, module: str, octets_between: int):
    rules = bound(filled(WORST[name])).prepare()
    paths = worst_paths(20_000)

    found = [switches(lambda path=path: rules.decide(path))[module] for path in paths]

    assert max(found) >= 20_000 // octets_between


def test_a_long_path_is_searched_for_keys_in_parts(switches: Switches):
    rules = bound(filled(WORST["many stars, anchored"])).prepare()

    # Keys of one length begin with each of 52 letters, and the path has all of these.
    assert switches(lambda: rules.decide(worst_paths(20_000)[0]))["keyword_index"] >= 52


def test_the_rules_of_many_keys_in_a_path_are_tried_in_parts(switches: Switches):
    keys = [f"k{n:05}" for n in range(300)]
    rules = bound(
        "\n".join(["User-agent: *", *(f"Disallow: /*{key}*/end" for key in keys)]).encode()
    ).prepare()

    assert switches(lambda: rules.decide("/" + "".join(keys)))["keyword_index"] >= 300


def test_repetitive_rules_without_a_key_are_tried_in_parts(switches: Switches):
    rules = bound(b"User-agent: *\n" + b"".join(b"Disallow: /*%b%d\n" % (b"a" * 20, n) for n in range(20)))

    assert switches(lambda: rules.decide("/" + "a" * 2_000))["keyword_index"] >= 20


def test_all_matching_rules_are_found_in_parts(switches: Switches):
    body = filled(WORST["a head each"])
    rules = bound(body).prepare()

    assert switches(lambda: rules.matching("/f1/a"))["ranking"] >= len(rules)
