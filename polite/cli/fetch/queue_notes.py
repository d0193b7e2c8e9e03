"""What a run keeps in its queue file beside the URLs that wait: the URLs that it could not fetch, and its options."""

import argparse
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple

from polite.frontier.durable.batch import Note
from polite.frontier.durable.store import DurableTaskStore
from polite.frontier.frontier import Frontier
from polite.frontier.sqlite import notes
from polite.frontier.sqlite.backend import SqliteBackend
from polite.robots.reason import Reason
from polite.task import Task

# The kinds of notes about URLs. A `FINAL` one was given up because of an option: the same run again cannot fetch it.
FAILED, GIVEN_UP, FINAL = "failed", "given up", "final"
_RETRIED: dict[str, tuple[str, ...]] = {
    "failed": (FAILED,),
    "given-up": (GIVEN_UP,),
    "all": (FAILED, GIVEN_UP),
}
# The name of the note with the options. No URL has it.
OPTIONS = "options"
_AT_A_TIME = 500

_Reading = Callable[[Connection], object]


class Undone(NamedTuple):
    """A URL that an earlier run could not fetch, as it was put."""

    url: str
    depth: int
    payload: Any


class QueueNotes:
    """The notes in the queue file. Until `attach` they are collected, and without a queue file they are lost."""

    def __init__(self) -> None:
        self._read: Callable[[_Reading], Awaitable[Any]] | None = None
        self._early: list[Note] = []
        self._write: Callable[[Note], None] = self._early.append
        self._any = False

    async def attach(self, frontier: Frontier) -> None:
        """Use the frontier's file, if it has one. Raises StoreFailed."""
        store = frontier.parts.store
        if not isinstance(store, DurableTaskStore) or not isinstance(store.backend, SqliteBackend):
            self._write = lambda note: None
            return
        file = store.backend

        async def read(reading: _Reading) -> Any:  # noqa: ANN401 - what `reading` returns
            await store.flush()
            return await file.run(partial(file.file.read, reading))

        self._read, self._write = read, store.note
        self._any = bool(await self.counts())
        for note in self._early:
            store.note(note)

    async def options(self) -> str | None:
        """Return the options that are kept in the file, or None. Raises StoreFailed."""
        found: Note | None = (
            None if self._read is None else await self._read(partial(notes.read, name=OPTIONS))
        )
        return None if found is None else found.value

    def keep_options(self, text: str) -> None:
        """Keep the options, before the first URL is given out."""
        self._write(Note(OPTIONS, OPTIONS, text))

    def add(self, task: Task, kind: str) -> None:
        """Keep a URL that was not fetched, in the transaction in which its task ends."""
        self._write(Note(task.url, kind, json.dumps([task.depth, task.payload])))

    def remove(self, task: Task) -> None:
        """Forget that a URL was not fetched. Only a run with `--retry` finds such a note."""
        if self._any:
            self._write(Note(task.url, None))

    async def undone(self, kinds: Collection[str]) -> AsyncIterator[Undone]:
        """Yield the URLs of these kinds."""
        after = ""
        if self._read is None:
            return
        while found := await self._read(partial(notes.some, kinds=kinds, after=after, limit=_AT_A_TIME)):
            for after, _, value in found:
                yield Undone(after, *json.loads(value))

    async def counts(self) -> dict[str, int]:
        """Return how many URLs of each kind are kept."""
        counted: dict[str, int] = {} if self._read is None else await self._read(notes.counts)
        return {kind: counted[kind] for kind in (FAILED, GIVEN_UP, FINAL) if kind in counted}


def retried(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the kinds of URLs that `--retry` tries again: final ones only with `--change`."""
    if options.retry is None:
        return ()
    return _RETRIED[options.retry] + ((FINAL,) if options.change else ())


def kind_of_drop(because: str) -> str:
    """Return the kind of a URL that the frontier dropped: whether the same options may fetch it another time."""
    reason = Reason.__members__.get(because)
    if because.startswith(("PacingPolicy.", "the server asks for")) or (reason and not reason.may_pass):
        return FINAL
    return GIVEN_UP
