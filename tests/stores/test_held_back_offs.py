"""Back-offs in a file: the longer one counts, and none is lost when the store is closed."""

import threading

import pytest

from polite.ports import SavedBackOff
from polite.stores.sqlite import SqliteStore
from tests.stores.support import FIRST, HOUR, OTHER, SITE
from tests.support import started_since


async def test_a_hold_is_kept_when_the_store_is_closed(opened):
    first = opened()
    first.hold(SITE, HOUR)
    await first.close()

    assert await opened().held(SITE) == HOUR
    assert await opened().held(OTHER) is None


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_hold_never_becomes_shorter(opened, at_once):
    store, shorter, longer = (
        opened(),
        SavedBackOff(20.0, 30.0, "shorter"),
        SavedBackOff(30.0, 9_000.0, "longer"),
    )

    for hold in (HOUR, shorter, longer, shorter):
        store.hold(SITE, hold)
        if not at_once:
            await store.save(OTHER, FIRST)
    await store.save(OTHER, FIRST)

    assert await store.held(SITE) == longer


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_hold_of_a_clock_that_was_ahead_hides_no_longer_one(opened, at_once):
    store, year = opened(), 365 * 86_400.0
    ahead, behind, longer = (
        SavedBackOff(year, year + 20.0, "ahead"),
        SavedBackOff(5.0, 15.0, "behind"),
        SavedBackOff(10.0, 80_010.0, "longer"),
    )

    for hold in (ahead, behind, longer, behind):
        store.hold(SITE, hold)
        if not at_once:
            await store.save(OTHER, FIRST)
    await store.save(OTHER, FIRST)

    assert await store.held(SITE) == longer


async def test_a_hold_and_a_snapshot_do_not_disturb_each_other(opened):
    store = opened()

    store.hold(SITE, HOUR)
    await store.save(SITE, FIRST)

    assert (await store.load(SITE), await store.held(SITE)) == (FIRST, HOUR)


@pytest.mark.parametrize(("now", "left"), [(10.0, 3600.0), (3_600.0, 10.0), (4_000.0, 0.0), (-1e9, 3_600.0)])
def test_a_hold_is_never_longer_than_it_was_however_a_clock_is_set(now, left):
    assert HOUR.left_s(now) == left


async def test_a_back_off_that_cannot_be_written_is_logged(path, caplog):
    store = SqliteStore(path.parent)

    store.hold(SITE, HOUR)
    await store.close()

    assert "1 back-off was not saved" in caplog.text


async def test_a_hold_that_comes_after_closing_opens_nothing_and_is_kept_when_the_store_is_used_again(
    opened, caplog
):
    before = set(threading.enumerate())
    store = opened()
    await store.save(SITE, FIRST)
    await store.close()

    store.hold(SITE, HOUR)
    threads = started_since(before)
    await store.save(OTHER, FIRST)

    assert not threads
    assert "came after" in caplog.text
    assert await store.held(SITE) == HOUR


async def test_a_hold_that_comes_after_closing_is_kept_when_the_store_is_closed_once_more(opened):
    store = opened()
    await store.open()
    await store.close()

    store.hold(SITE, HOUR)
    await store.close()

    assert await opened().held(SITE) == HOUR
