"""Long computations let other threads run, in the compiled form too, where only a call of a Python function does that."""

from collections.abc import Callable

import pytest

from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.parse import parse

PACKAGE = "polite.robots"
MODULES = (
    "sections",
    "rules",
    "matching.ranking",
    "matching.rule_index",
    "matching.keyword_index",
    "matching.shift_and",
)


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Count the moments at which threads may switch while something is computed."""
    moments: list[None] = []
    for module in MODULES:
        monkeypatch.setattr(f"{PACKAGE}.{module}.let_threads_switch", lambda: moments.append(None))

    def counted(compute: Callable[[], object]) -> int:
        moments.clear()
        compute()
        return len(moments)

    return counted


def test_a_file_of_rules_is_read_in_parts(switches):
    body = filled(WORST["real-like"])

    assert switches(lambda: parse(body).rules_for("ExampleBot/1.0")) > len(body) // 16_384


def test_a_file_of_user_agent_lines_is_read_in_parts(switches):
    body = b"User-agent: other\n" * 28_000

    assert switches(lambda: parse(body).rules_for("ExampleBot/1.0")) >= len(body) // 8_192 - 1


@pytest.mark.parametrize("name", ["distinct words", "a head each"])
def test_many_rules_are_indexed_in_parts(switches, name: str):
    body = filled(WORST[name])
    rules = parse(body).rules_for("ExampleBot/1.0")

    # A rule set of many rules is indexed when it is bound.
    assert switches(lambda: parse(body).rules_for("ExampleBot/1.0")) > 2 * len(rules) // 1_024


@pytest.mark.parametrize(
    ("name", "octets_between"),
    [("letters in order", 32), ("distinct words", 10_000), ("heads of one another", 200)],
)
def test_a_long_path_is_decided_in_parts(switches, name: str, octets_between: int):
    rules = parse(filled(WORST[name])).rules_for("ExampleBot/1.0").prepare()
    paths = worst_paths(20_000)

    assert max(switches(lambda path=path: rules.decide(path)) for path in paths) >= 20_000 // octets_between
