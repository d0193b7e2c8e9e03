"""Overrides: a chain of policies shares one index, and each reads only what is its own."""

from polite import Origin
from polite.pacing.policy import Options, Overrides

A, B, C = (Origin.of(f"https://{name}.example") for name in "abc")
SLOW: Options = (("min_delay", 5.0),)
WIDE: Options = (("concurrency", 3), ("jitter", 0.5))


def test_the_last_options_of_an_origin_count_at_its_first_position() -> None:
    overrides = Overrides([(A, SLOW), (B, SLOW), (A, WIDE)])

    assert overrides == ((A, WIDE), (B, SLOW))
    assert overrides.put(A, SLOW) == ((A, SLOW), (B, SLOW))


def test_what_changed_is_what_was_put_or_left_out() -> None:
    before = Overrides([(A, SLOW), (B, SLOW)])

    assert before.changed(before) == set()
    assert before.put(C, WIDE).changed(before) == {C}
    assert before.put(A, WIDE).changed(before) == {A}
    assert Overrides().changed(before) == {A, B}


def test_the_largest_value_is_known_through_every_change() -> None:
    overrides = Overrides([(A, SLOW), (B, (("min_delay", 2.0),))])
    assert overrides.most("min_delay") == 5.0

    assert overrides.put(A, (("min_delay", 1.0),)).most("min_delay") == 2.0
    assert overrides.put(B, (("min_delay", 9.0),)).most("min_delay") == 9.0
    assert overrides.put(C, WIDE).most("jitter") == 0.5
    assert overrides.most("jitter") == 0.0
