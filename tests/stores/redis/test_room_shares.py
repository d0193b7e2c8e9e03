"""How the homes that a process can take are shared out among partitions."""

from collections import Counter

from polite.stores.redis.room_shares import RoomShares


def test_a_partition_gets_what_it_wants_while_there_is_room() -> None:
    assert RoomShares().room(0, 5, 3, may_have=True) == 3
    assert RoomShares().room(0, 2, 3, may_have=True) == 2


def test_a_partition_that_got_none_comes_before_the_others_next_time() -> None:
    shares = RoomShares()
    given: Counter[int] = Counter()

    # One home at a time, and the partitions ask in the same order each time.
    for _ in range(40):
        free = 1
        for partition in range(4):
            room = shares.room(partition, free, 3, may_have=True)
            free -= room
            given[partition] += room

    assert min(given.values()) >= 9


def test_a_partition_without_homes_keeps_no_place_from_others() -> None:
    shares = RoomShares()

    assert shares.room(0, 0, 1, may_have=False) == 0
    assert shares.room(1, 1, 1, may_have=True) == 1


def test_a_partition_whose_homes_have_gone_keeps_no_place_any_more() -> None:
    shares = RoomShares()
    shares.room(0, 0, 1, may_have=True)
    assert shares.room(1, 1, 1, may_have=True) == 0

    shares.room(0, 0, 1, may_have=False)

    assert shares.room(1, 1, 1, may_have=True) == 1
