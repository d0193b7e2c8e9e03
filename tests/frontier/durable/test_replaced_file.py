"""A frontier's file that is removed, replaced or moved while it is in use: it is noticed, and no other file is harmed."""

import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from polite.errors import StoreFailed
from polite.frontier.durable.backend import Batch, Put
from polite.frontier.sqlite.file_lock import FileLock, identities
from polite.frontier.sqlite.queue_file import QueueFile
from polite.frontier.task_store import draft_of
from polite.origin import Origin, Target


def queue(path: Path) -> QueueFile:
    return QueueFile(path, order="fifo", tasks_per_origin=32, max_done=100)


def puts(first: int, count: int) -> Batch:
    return Batch(
        puts=[
            Put(Target(Origin.of("https://a.test"), f"/{n}"), draft_of(), again=False, ready_at=None)
            for n in range(first, first + count)
        ]
    )


def holding(path: Path, count: int) -> QueueFile:
    file = queue(path)
    file.open(3)
    file.apply(puts(0, count))
    return file


def waiting(path: Path) -> int:
    file = queue(path)
    try:
        return file.open(3).totals.waiting
    finally:
        file.close()


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    other = path.with_name("other.sqlite")
    holding(other, 70).close()
    other.replace(path)


def moved(path: Path) -> None:
    path.rename(path.with_name("moved.sqlite"))


AFTERWARDS = [(removed, 0), (replaced, 70), (moved, 0)]


@pytest.mark.parametrize(("happening", "left"), AFTERWARDS)
@pytest.mark.parametrize("by", ["the next batch", "close"])
def test_it_is_noticed_by_the_next_batch_or_as_the_file_closes_and_the_lock_is_given_back(
    path, by, happening, left
):
    file = holding(path, 500)
    happening(path)
    with pytest.raises(StoreFailed, match="while it was in use"):
        file.close() if by == "close" else file.apply(puts(500, 500))
    file.close()
    assert by == "close" or not path.with_name("queue.sqlite-wal").exists()
    assert waiting(path) == left


def test_a_file_that_was_moved_takes_with_it_what_was_acknowledged(path: Path) -> None:
    file = holding(path, 500)
    moved(path)
    with pytest.raises(StoreFailed):
        file.close()
    assert waiting(path.with_name("moved.sqlite")) == 500


def crashed(path: Path) -> None:
    """The files as a process leaves them that is killed after 300 puts."""
    away = path.with_name("away")
    away.mkdir()
    _end_child(holding(away / path.name, 300))
    for suffix in ("", "-wal", "-lock"):
        (away / f"{path.name}{suffix}").rename(f"{path}{suffix}")
    # It is the same disk: nothing was copied, so the identities are those that were noted.


def _end_child(file: QueueFile) -> None:
    """Drop the locks as the end of the process does, without the checkpoint of a close: by a copy of the log and the file."""
    copies = {}
    for suffix in ("", "-wal", "-lock"):
        one = Path(f"{file.path}{suffix}")
        copies[one] = one.read_bytes()
    file.close()
    for one, content in copies.items():
        one.write_bytes(content)
    # What was noted before is of files that close removed.
    lock = FileLock(file.path)
    assert lock.acquire(1)
    lock.note(identities(file.path))
    os.close(lock._descriptor or 0)
    lock._descriptor = None


def test_after_a_crash_the_log_is_read(path: Path) -> None:
    crashed(path)
    assert waiting(path) == 300


def test_after_a_crash_the_log_does_not_destroy_another_file_put_there(path, caplog):
    crashed(path)
    other = path.with_name("other.sqlite")
    holding(other, 4_000).close()
    other.replace(path)

    assert waiting(path) == 4_000
    assert "belongs to another file" in caplog.text
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_after_a_crash_the_log_of_a_file_that_is_gone_is_kept(path: Path) -> None:
    crashed(path)
    log = path.with_name("queue.sqlite-wal").read_bytes()
    path.unlink()
    assert waiting(path) == 0
    assert [each.read_bytes() for each in path.parent.glob("*.foreign-*-wal")] == [log]


def _wait(done):
    done.wait(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_hold_the_lock(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    done, lock = context.Event(), FileLock(path)
    assert lock.acquire(1)
    child = context.Process(target=_wait, args=(done,))
    child.start()
    try:
        assert not FileLock(path).acquire(0.05)  # the child's copy is closed, and the lock is held still
        os.close(lock._descriptor or 0)  # as the end of this process would
        lock._descriptor = None
        after = FileLock(path)

        assert after.acquire(5)

        after.release()
    finally:
        done.set()
        child.join()
