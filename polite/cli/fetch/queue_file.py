"""What a run keeps in its queue file beside the URLs that wait: the URLs that it could not fetch, and its options."""

import argparse
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from polite.cli.options import DEFAULT_AGENT, SECRET, merged
from polite.errors import InvalidOption, StoreFailed
from polite.frontier.durable.backend import Note
from polite.frontier.durable.store import DurableTaskStore
from polite.frontier.frontier import Frontier
from polite.frontier.sqlite.inspector import kept_note
from polite.frontier.sqlite.queue_file import SqliteBackend
from polite.frontier.sqlite.schema import note_counts, read_note, some_notes
from polite.robots.reason import Reason
from polite.task import Task

# The kinds of notes about URLs. A `FINAL` one was given up because of an option: the same run again cannot fetch it.
FAILED, GIVEN_UP, FINAL = "failed", "given up", "final"
_RETRIED = {"failed": (FAILED,), "given-up": (GIVEN_UP,), "all": (FAILED, GIVEN_UP)}
# The name of the note with the options. No URL has it.
OPTIONS = "options"
_AT_A_TIME = 500


class QueueNotes:
    """The notes in the queue file. Until `attach` they are collected, and without a queue file they are lost.

    While `undone` yields URLs, those of `ended` have had their attempts of this run: an earlier run had put them again.
    """

    def __init__(self) -> None:
        self.ended: set[str] | None = None
        self._early: list[Note] | None = []
        self._store: DurableTaskStore | None = None
        self._file: SqliteBackend | None = None
        self._any = False

    async def attach(self, frontier: Frontier) -> None:
        """Use the frontier's file, if it has one. Raises StoreFailed."""
        store, early, self._early = frontier.dispatcher.store, self._early or (), None
        if isinstance(store, DurableTaskStore) and isinstance(store.backend, SqliteBackend):
            self._store, self._file = store, store.backend
            self._any = bool(await self.counts())
            for note in early:
                store.note(note)

    async def _read(self, reading: Callable[[Connection], object]) -> Any:  # noqa: ANN401 - what `reading` returns
        if self._store is None or self._file is None:
            return None
        await self._store.flush()
        return await self._file.run(partial(self._file.file.read, reading))

    def _write(self, note: Note) -> None:
        if self._early is not None:
            self._early.append(note)
        elif self._store is not None:
            self._store.note(note)

    async def options(self) -> str | None:
        """Return the options that are kept in the file, or None. Raises StoreFailed."""
        found: Note | None = await self._read(partial(read_note, name=OPTIONS))
        return None if found is None else found.value

    def keep_options(self, text: str) -> None:
        """Keep the options, before the first URL is given out."""
        self._write(Note(OPTIONS, OPTIONS, text))

    def add(self, task: Task, kind: str) -> None:
        """Keep a URL that was not fetched, in the transaction in which its task ends."""
        self._end(task)
        self._write(Note(task.url, kind, json.dumps([task.depth, task.payload])))

    def remove(self, task: Task) -> None:
        """Forget that a URL was not fetched. Only a run with `--retry` finds such a note."""
        if self._any:
            self._end(task)
            self._write(Note(task.url, None))

    def _end(self, task: Task) -> None:
        if self.ended is not None:
            self.ended.add(task.url)

    async def undone(self, kinds: Collection[str]) -> AsyncIterator[tuple[str, int, Any]]:
        """Yield the URLs of these kinds as they were put: URL, depth, payload."""
        after = ""
        if not kinds:
            return
        self.ended = set()
        while found := await self._read(partial(some_notes, kinds=kinds, after=after, limit=_AT_A_TIME)):
            for after, _, value in found:
                depth, payload = json.loads(value)
                yield after, depth, payload
            self.ended = {each for each in self.ended if each > after}
        self.ended = None

    async def counts(self) -> dict[str, int]:
        """Return how many URLs of each kind are kept."""
        counted = await self._read(note_counts) or {}
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


# The options of a crawl: what is sent, how fast, and to which addresses.

# By option: a string, a list of strings for one that may be repeated, True for a switch. None is for an option that is not used.
Kept = dict[str, Any]

_SECRET = "(not kept, digest "  # noqa: S105 - what stands for the value


def _number(value: float | None) -> str | None:
    return None if value is None else str(value) if isinstance(value, int) else f"{value:.15g}"


def _header(fields: list[tuple[str, str]] | None) -> list[str] | None:
    """Return the fields as text. Two octets of a digest tell another secret from this one, and do not help to guess it."""
    shown = [
        f"{name}: {_SECRET}{blake2b(value.encode(), digest_size=2).hexdigest()})"
        if name.lower() in SECRET
        else f"{name}: {value}"
        for name, value in merged(fields or ()).items()
    ]
    return sorted(shown) or None


# What changes neither the pace nor the requests may differ between runs: outputs, --concurrency, --tries, --timeout.
_TEXT: dict[str, Callable[[Any], object]] = {
    "agent": lambda agent: None if agent.header == DEFAULT_AGENT else agent.header,
    "header": _header,
    "delay": _number,
    "long-delay": str,
    "back-off-on": lambda statuses: sorted(map(str, statuses)) if statuses else None,
    "max-pages": _number,
    "max-origin-bytes": _number,
    "max-failures": _number,
    "max-bytes": _number,
    "max-redirects": _number,
    "dialect": lambda dialect: dialect.name,
    "allow-private": lambda on: on or None,
    "resolve": lambda names: (
        sorted(f"{name}:{address}" for name, address in names.items()) if names else None
    ),
    "sign": lambda key: key,
    "signature-agent": lambda url: url,
    "signature-agent-as-string": lambda on: on or None,
}


def kept_of(options: argparse.Namespace) -> Kept:
    """Return what the queue file is to keep of these options."""
    return {name: text(_value(options, name)) for name, text in _TEXT.items()}


def as_text(kept: Kept) -> str:
    """Return the options as the queue file has them."""
    return json.dumps(kept, sort_keys=True)


def read(options: argparse.Namespace) -> Kept | None:
    """Return the options that the queue file keeps, or None.

    Raises StoreFailed if a crawl has the file open, and InvalidOption if they are damaged, except with `--change`.
    """
    try:
        note = kept_note(Path(options.resume), OPTIONS)
        return None if note is None else json.loads(note.value)
    except (StoreFailed, ValueError) as error:
        if isinstance(error, StoreFailed) and error.may_pass:
            raise
        if options.change:
            return None
        raise InvalidOption(
            f"--resume {options.resume}: the options that it keeps are damaged; pass those of the first run again, with --change"
        ) from error


def arguments(kept: Kept, given: argparse.Namespace) -> Iterator[str]:
    """Yield the arguments that stand for kept options, to be overruled by those that are given now.

    Of an option that may be repeated, only those given now count, but a secret field is given beside those that are kept.
    Raises InvalidOption for a secret that is needed again.
    """
    fields = {name.lower() for name in merged(given.header or ())}
    for name, value in kept.items():
        match value:
            case True:
                yield f"--{name}"
            case str():
                yield f"--{name}={value}"
            case list() if not _value(given, name) or (name == "header" and not given.change):
                for each in value:
                    field = each.partition(":")[0]
                    if name != "header" or field.lower() not in SECRET:
                        yield f"--{name}={each}"
                    elif field.lower() not in fields:
                        raise InvalidOption(
                            f"--resume {given.resume}: the value of --header {field} is not kept in the file; pass it again"
                        )


def require_same(kept: Kept, options: argparse.Namespace) -> None:
    """Raise InvalidOption if an option has another value than at the beginning. A crawl without a name may be given one."""
    for name, value in kept_of(options).items():
        before = kept.get(name)
        if _compared(name, value) != _compared(name, before) and (name, before) != ("agent", None):
            raise InvalidOption(
                f"--resume {options.resume}: the crawl has {_shown(name, before)}, and this run {_shown(name, value)}; "
                "leave the option out, or pass --change to go on with the new value"
            )


def _compared(name: str, value: object) -> object:
    """Return the value as it is compared: names of fields in lower case."""
    if name != "header" or not isinstance(value, list):
        return value
    fields = [each.partition(":") for each in value]
    return [(field.lower(), rest) for field, _, rest in fields]


def _value(options: argparse.Namespace, name: str) -> Any:  # noqa: ANN401 - each option has a type of its own
    return getattr(options, name.replace("-", "_"))


def _shown(name: str, value: object) -> str:
    match value:
        case None:
            return f"no --{name}"
        case True:
            return f"--{name}"
        case list():
            return " ".join(f"--{name} {each!r}" for each in value)
        case _:
            return f"--{name} {value!r}" if " " in str(value) else f"--{name} {value}"
