"""Overrides: a chain of policies shares one index, and each reads only what is its own."""

import copy

from polite import Origin
from polite.pacing.policy import Options, Overrides

A, B, C = (Origin.of(f"https://{name}.example") for name in "abc")
SLOW: Options = (("min_delay", 5.0),)
WIDE: Options = (("concurrency", 3), ("jitter", 0.5))


def test_the_last_options_of_an_origin_count_at_its_first_position() -> None:
    overrides = Overrides([(A, SLOW), (B, SLOW), (A, WIDE)])

    assert overrides == ((A, WIDE), (B, SLOW))
    assert overrides.put(A, SLOW) == ((A, SLOW), (B, SLOW))


def test_what_is_put_to_one_is_not_in_those_before_it() -> None:
    first = Overrides().put(A, SLOW)
    second = first.put(B, WIDE)

    assert (first.options(B), second.options(B), second.options(A)) == ((), WIDE, SLOW)
    assert Overrides().options(A) == ()


def test_a_branch_has_its_own_options() -> None:
    first = Overrides().put(A, SLOW)
    one, other = first.put(B, SLOW), first.put(C, WIDE)

    longer = other.put(B, WIDE)

    assert (one.options(B), one.options(C)) == (SLOW, ())
    assert (other.options(B), other.options(C)) == ((), WIDE)
    assert (longer.options(B), longer.options(C), one.options(B)) == (WIDE, WIDE, SLOW)


def test_a_branch_that_puts_the_same_origin_reads_its_own_options() -> None:
    first = Overrides().put(A, SLOW)
    one, other = first.put(B, SLOW), first.put(B, WIDE)

    assert (one.options(B), other.options(B)) == (SLOW, WIDE)
    assert one.put(C, WIDE).options(C) == WIDE
    assert other.put(C, SLOW).options(C) == SLOW


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


def test_a_copy_has_an_index_too() -> None:
    overrides = Overrides([(A, SLOW)]).put(B, WIDE)

    again = copy.deepcopy(overrides)

    assert again == overrides
    assert again.options(B) == WIDE
