"""Fingerprints in generations: whatever was merged, and however often the file was opened again, the same URLs are known."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import polite
from polite.frontier.sqlite import schema, seen
from polite.frontier.sqlite.seen import SeenInFile, fingerprint
from polite.task import Admission
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

MAX_DONE = 60


@pytest.fixture(params=[False, True], ids=["narrow", "wide"])
def file(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.make(connection, "fifo", wide=request.param)
        yield connection


def remembered(file: sqlite3.Connection) -> int:
    """How many URLs are done, by what the file says: the newest word of each counts."""
    words = dict(file.execute("SELECT fingerprint, done FROM seen"))
    words.update(file.execute("SELECT fingerprint, done FROM lately ORDER BY rowid"))
    return sum(done is not None for done in words.values())


@pytest.mark.parametrize("seed", range(4))
def test_urls_are_known_as_long_as_tasks_have_them_or_they_ended_late(
    seed: int, file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    draw, state = random.Random(seed), schema.State()
    known, held, ends = SeenInFile(file, state, MAX_DONE), set[seen.Fingerprint](), 0
    ended_at: dict[seen.Fingerprint, int] = {}

    for step in range(9_000):
        number, again = draw.randrange(-150, 150) << 55, draw.random() < 0.2
        url = (number << 64).to_bytes(16, "big", signed=True) if known.wide else number
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
        known.hold(state, fingerprint(f"/{number}", wide=known.wide), again=False)
        known.finish(state, fingerprint(f"/{number}", wide=known.wide))
        known.write(state)

    kept = [len(file.execute(query).fetchall()) for query in ("SELECT 1 FROM seen", "SELECT 1 FROM lately")]
    assert kept[0] < MAX_DONE + 3 * 40
    assert kept[1] < 10 * 40
    assert MAX_DONE <= state.remembered == remembered(file) < MAX_DONE + 4 * 40


def test_fingerprints_differ_by_text() -> None:
    for wide in (False, True):
        some = [
            fingerprint(text, wide=wide)
            for text in ("https://a.test/a", "https://b.test/a", "https://a.test\n=k")
        ]
        assert len(set(some)) == 3
        assert isinstance(some[0], bytes) is wide


async def test_a_file_with_wide_fingerprints_keeps_them(tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide.sqlite", tmp_path / "narrow.sqlite"
    for path, options in ((wide, {"wide_fingerprints": True}), (wide, {}), (narrow, {})):
        async with scripted_gate() as gate, polite.open_frontier(gate, store=path, **options) as frontier:
            found = await frontier.put("https://a.test/1")
        with closing(sqlite3.connect(path)) as connection:
            assert schema.is_wide(connection) is (path == wide)
        assert (found is Admission.DUPLICATE) is (path == wide and not options)
    async with scripted_gate() as gate:
        with pytest.raises(polite.StoreFailed, match="without wide_fingerprints"):
            async with polite.open_frontier(gate, store=narrow, wide_fingerprints=True):
                pass
        with pytest.raises(polite.InvalidOption, match="needs a file"):
            async with polite.open_frontier(gate, wide_fingerprints=True):
                pass


def test_a_vacuum_while_generations_merge_forgets_nothing(
    file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    state, urls = schema.State(), []
    known = SeenInFile(file, state, MAX_DONE)
    while not (len(urls) > 2_500 and 100 < state.merged < 200):
        urls.append(fingerprint(f"/{len(urls)}", wide=known.wide))
        known.hold(state, urls[-1], again=False)
        known.write(state)

    file.execute("VACUUM")

    known = SeenInFile(file, state, MAX_DONE)
    assert all(known.knows(state, url, again=False) for url in urls)
