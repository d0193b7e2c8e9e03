"""A damaged file: what it gives back is what was saved, or nothing, or StoreFailed; never something else, and never no end."""

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from polite.errors import StoreFailed
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores import robots_database as store_file
from polite.stores.inspector import StoreInspector
from polite.stores.robots_database import Evictor, RobotsDatabase

POLICY = RobotsPolicy()
PAGE = 4096


def snapshot(number: int) -> Snapshot:
    if number % 5 == 0:
        return renewed(None, Unavailable(Reason.CLIENT_ERROR, "", 404), POLICY, 100.0 + number)
    if number % 7 == 0:
        failure = Unreachable(Reason.SERVER_ERROR, "", 503, retry_after_s=600.0)
        return renewed(None, failure, POLICY, 100.0 + number)
    body = b"User-agent: *\nDisallow: /%d\n" % number * (1 + number * 37 % 200)
    return renewed(None, Found(body, 200, ""), POLICY, 100.0 + number)


SNAPSHOTS = {f"https://h{number}.test": snapshot(number) for number in range(60)}
HOLDS = {
    name: SavedBackOff(1.0, 5_000.0 + place, "status 429")
    for place, name in enumerate(SNAPSHOTS)
    if place % 3
}


def opened(path: Path, **options: object) -> RobotsDatabase:
    return RobotsDatabase(path, evictor=Evictor(40, 1 << 20, 1_000), wall=lambda: 1e6, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "crawl.sqlite"
    file = RobotsDatabase(path, wall=lambda: 1e6)
    file.write(SNAPSHOTS, HOLDS)
    file.close()
    return path.read_bytes()


def damaged(octets: bytes, seed: int) -> bytes:
    """One bit, one octet, or some octets from elsewhere; often near a page's beginning, where its tree is."""
    chance, changed = random.Random(seed), bytearray(octets)
    for _ in range(chance.choice((1, 1, 1, 3, 20))):
        at = chance.choice(
            (chance.randrange(len(changed)), chance.randrange(len(changed) // PAGE) * PAGE + 40)
        )
        match chance.randrange(3):
            case 0:
                changed[at] ^= 1 << chance.randrange(8)
            case 1:
                changed[at] = chance.randrange(256)
            case _:
                length = min(chance.randrange(1, 200), len(changed) - at)
                start = chance.randrange(len(changed) - length)
                changed[at : at + length] = changed[start : start + length]
    return bytes(changed)


@pytest.mark.parametrize("seed", range(0, 400, 50))
def test_a_damaged_file_never_gives_back_what_was_not_saved(sound: bytes, seed: int, tmp_path: Path) -> None:
    for each in range(seed, seed + 50):
        path = tmp_path / f"{each}.sqlite"
        path.write_bytes(damaged(sound, each))
        file = opened(path)
        for name, saved in SNAPSHOTS.items():
            try:
                loaded, held = file.load(name), file.held(name)
            except StoreFailed:
                break
            assert loaded in (None, saved), each
            assert held in (None, HOLDS.get(name)), each
        with suppress(StoreFailed):
            file.write({"https://new.test": snapshot(1)}, {})
            assert file.load("https://new.test") == snapshot(1), each
        file.close()


def test_an_index_that_leads_to_another_origins_row_gives_nothing(tmp_path: Path) -> None:
    path = tmp_path / "crawl.sqlite"
    names = ["https://aa.test", "https://bb.test", "https://cc.test"]
    file = opened(path)
    file.write({name: snapshot(1 + place) for place, name in enumerate(names)}, {})
    file.close()
    octets = bytearray(path.read_bytes())
    index = 10  # the kind of a page, in its first octet
    leaf = next(
        at
        for at in range(0, len(octets), PAGE)
        if octets[at] == index and names[1].encode() in octets[at : at + PAGE]
    )
    place = octets.index(names[1].encode(), leaf) + len(names[1])
    assert octets[place] == 2
    octets[place] = 3
    path.write_bytes(octets)

    file = opened(path)
    loaded = file.load(names[1])
    file.close()

    assert loaded is None


def test_a_flipped_bit_of_a_body_is_known(tmp_path: Path) -> None:
    path = tmp_path / "crawl.sqlite"
    file = opened(path)
    file.write({"https://h1.test": snapshot(1)}, {})
    file.close()
    octets = path.read_bytes().replace(b"Disallow: /1\n", b"Eisallow: /1\n", 1)
    path.write_bytes(octets)

    file, inside = opened(path), StoreInspector(str(path))
    loaded = file.load("https://h1.test")
    with pytest.raises(StoreFailed, match="checksum"):
        inside.origin("https://h1.test")
    file.write({"https://h1.test": snapshot(2)}, {})

    assert loaded is None
    assert file.load("https://h1.test") == snapshot(2)
    file.close()
    inside.close()


def test_a_text_that_is_none_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "crawl.sqlite"
    file = opened(path)
    file.write({"https://h1.test": snapshot(1)}, {"https://h1.test": SavedBackOff(1.0, 2.0, "status 429")})
    file.close()
    path.write_bytes(path.read_bytes().replace(b"status 429", b"\xff\xfeatus 429"))

    file = opened(path)

    assert file.held("https://h1.test") is None
    with pytest.raises(StoreFailed, match="UTF-8"):
        list(file.rows("SELECT * FROM back_offs"))
    file.close()


def test_what_does_not_come_to_its_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_MAX_CHECKS", 2)
    file = opened(tmp_path / "crawl.sqlite")
    file.write({}, {})

    with pytest.raises(StoreFailed, match="took too long"):
        list(
            file.rows("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
        )
    assert [tuple(row) for row in file.rows("SELECT 1")] == [(1,)]
    file.close()


def test_a_file_of_an_earlier_version_is_read_without_checksums_until_each_row_is_saved_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "crawl.sqlite"
    file = opened(path)
    file.write({"https://h1.test": snapshot(1), "https://h2.test": snapshot(2)}, {})
    file.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE robots DROP COLUMN good_until")
        connection.execute("ALTER TABLE robots DROP COLUMN checksum")
        connection.execute("ALTER TABLE back_offs DROP COLUMN checksum")
        connection.execute("DROP TABLE validators")
        connection.execute("PRAGMA user_version = 2")

    file = opened(path)
    file.write({"https://h2.test": snapshot(3)}, {})
    first, second = (row["checksum"] for row in file.rows("SELECT checksum FROM robots ORDER BY origin"))

    assert (file.load("https://h1.test"), file.load("https://h2.test")) == (snapshot(1), snapshot(3))
    assert first == 0
    assert second != 0
    file.close()
