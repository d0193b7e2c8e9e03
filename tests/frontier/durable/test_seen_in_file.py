"""Fingerprints in generations: whatever was merged, and however often the file was opened again, the same URLs are known."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from polite.frontier.sqlite import schema, seen
from polite.frontier.sqlite.seen import SeenInFile, fingerprint

MAX_DONE = 60


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.make(connection, "fifo")
        yield connection


def remembered(file: sqlite3.Connection) -> int:
    """How many URLs are done, by what the file says: the newest word of each counts."""
    words = dict(file.execute("SELECT fingerprint, done FROM seen"))
    words.update(file.execute("SELECT fingerprint, done FROM lately ORDER BY rowid"))
    return sum(done is not None for done in words.values())


@pytest.mark.parametrize("seed", range(6))
def test_urls_are_known_as_long_as_tasks_have_them_or_they_ended_late(
    seed: int, file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    draw, state = random.Random(seed), schema.State()
    known, held, ended_at, ends = SeenInFile(file, state, MAX_DONE), set[int](), dict[int, int](), 0

    for step in range(9_000):
        url, again = draw.randrange(-150, 150) << 55, draw.random() < 0.2
        late = url in ended_at and ended_at[url] > ends - MAX_DONE
        duplicate = url in held or (late and not again)
        assert known.knows(state, url, again=again) == duplicate
        if draw.random() < 0.5:
            assert known.hold(state, url, again=again) != duplicate
            if not duplicate:
                held.add(url)
                ended_at.pop(url, None)
        elif held:
            url = draw.choice(sorted(held))
            held.remove(url)
            ends += 1
            ended_at[url] = ends
            known.finish(state, url)
        if draw.random() < 0.3:
            known.write(state)
        if step % 700 == 699:
            known.write(state)
            known = SeenInFile(file, state, MAX_DONE)
    known.write(state)

    (merged,) = file.execute("SELECT count(*) FROM seen").fetchone()
    assert merged > 70
    assert state.sequence == ends
    assert state.remembered == remembered(file)


def test_what_is_forgotten_leaves_the_file(file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 40)
    state = schema.State()
    known = SeenInFile(file, state, MAX_DONE)

    for number in range(5_000):
        known.hold(state, fingerprint(1, f"/{number}", None), again=False)
        known.finish(state, fingerprint(1, f"/{number}", None))
        known.write(state)

    kept = [len(file.execute(query).fetchall()) for query in ("SELECT 1 FROM seen", "SELECT 1 FROM lately")]
    assert kept[0] < MAX_DONE + 3 * 40
    assert kept[1] < 10 * 40
    assert MAX_DONE <= state.remembered == remembered(file) < MAX_DONE + 4 * 40


def test_a_url_and_a_key_differ_by_origin_and_text() -> None:
    one = fingerprint(1, "/a", None)

    assert len({one, fingerprint(2, "/a", None), fingerprint(1, "/b", None), fingerprint(1, "/a", "=k")}) == 4
    assert fingerprint(1, "/other", "=k") == fingerprint(1, "/a", "=k")
    assert -(2**63) <= one < 2**63


def test_a_vacuum_while_generations_merge_forgets_nothing(
    file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    state, urls = schema.State(), []
    known = SeenInFile(file, state, MAX_DONE)
    while not (len(urls) > 2_500 and 100 < state.merged < 200):
        urls.append(fingerprint(1, f"/{len(urls)}", None))
        known.hold(state, urls[-1], again=False)
        known.write(state)

    file.execute("VACUUM")

    known = SeenInFile(file, state, MAX_DONE)
    assert all(known.knows(state, url, again=False) for url in urls)
