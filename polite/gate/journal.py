"""Journal: decisions as lines of JSON in a file, each with the hash of the line before, written by a thread of its own.

The loop appends a tuple for each decision. The thread takes what came in `_BATCH_S`, works out the rule, makes the lines and
writes them at once. A new robots.txt is copied first, so that no line names a copy that is not there. `polite.cli.journal` reads
the file.

A line that cannot be written stops no politeness, but new requests: an unrecorded one would make the journal untrue. `granted`
raises StoreFailed until the thread, which goes on trying, has written what waits.
"""

import asyncio
import json
import os
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from polite.errors import StoreFailed
from polite.events import BackedOff, Dropped, Event, OperatorActed, Reclaimed, RobotsFetched, Skipped
from polite.gate.rules_cache import Grounds, OriginRules
from polite.log import fields, log
from polite.origin import Target
from polite.pacing.turn import Turn
from polite.ports import Clock
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.dialect import Dialect
from polite.robots.parse import parse
from polite.url.parse import MAX_URL

# What the first line of a journal has as the hash of the line before.
FIRST = "0" * 64
# Octets; a line holds little more than one URL, which may be escaped.
LONGEST_LINE = 8 * MAX_URL
# Octets of a file before the next one is begun.
_LARGEST = 64 << 20
# Seconds in which lines are collected, and between two attempts to write.
_BATCH_S, _RETRY_S = 0.02, 1.0
# Lines that wait to be written. Beyond that no permit is given.
_MOST_WAITING = 50_000
# Origins whose last grant and file are remembered; signals of one file; characters of a text.
_MOST_ORIGINS, _MOST_SIGNALS, _LONGEST = 10_000, 20, 500
_SIGNALS = re.compile(rb"content-(?:usage|signal)|license", re.IGNORECASE)
# `json.dumps` with these makes an encoder at each call.
_encode = json.JSONEncoder(separators=(",", ":")).encode
# Events that are written, and as what.
_EVENTS: dict[type, str] = {
    BackedOff: "backed off",
    Dropped: "dropped",
    OperatorActed: "operator",
    Reclaimed: "reclaimed",
    RobotsFetched: "fetched",
    Skipped: "given back",
}


class Journal:
    """The journal of one gate. `open` it first; the caller keeps other gates from the file.

    Args:
        path: The file. Beside it are the files that were rotated, as FILE.000001, and the folder FILE.robots.
        clock: Tells the time of each line.
        agent: Whose decisions these are.
        dialect: How robots.txt is read.
        largest: Octets after which the next file is begun.

    Attributes:
        path: The file.
        events: The events that it writes; it is a Listener.
    """

    events: frozenset[type] = frozenset(_EVENTS)

    def __init__(
        self, path: Path, clock: Clock, agent: UserAgent, dialect: Dialect, *, largest: int = _LARGEST
    ) -> None:
        # The process may change its folder later, and a symbolic link is not to be renamed.
        self.path: Path = path.resolve()
        self._copies = Path(f"{self.path}.robots")
        self._clock, self._agent, self._dialect, self._largest = clock, agent, dialect, largest
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._lost = 0  # lines beyond the limit, since the last one that was kept
        self._failed: OSError | None = None
        self._closing = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="polite journal", daemon=True)
        # Of the thread: the file, its size, the hash of its last line, and what is not written yet.
        self._file: int | None = None
        self._size = 0
        self._hash = FIRST
        self._told_at = 0.0  # the time of the last line: some clocks can be asked on the loop only
        self._lines: list[bytes] = []
        self._new_copies: dict[str, OriginRules] = {}
        self._archive: Path | None = None
        # By origin, the last used last: when the last turn was granted; the file that was in force.
        self._granted_at: dict[str, float] = {}
        self._files: dict[str, object] = {}

    async def open(self) -> None:
        """Continue the file, or begin it. Raises StoreFailed."""
        self._told_at = self._clock.wall()
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise self._refusal(error) from error
        self._thread.start()

    async def close(self) -> None:
        """Write what waits, and wait for the disk. What could not be written is logged. May be called twice."""
        if not self._closing:
            self._waiting.append((self._clock.wall(), "closed", {}))
        self._closing = True
        self._wake.set()
        if self._thread.ident is not None:
            try:
                await asyncio.to_thread(self._thread.join)
            finally:
                # If it is cancelled: another gate may open the file next.
                self._thread.join(_RETRY_S)

    # What the gate tells, on the loop.

    def granted(self, target: Target, grounds: Grounds, turn: Turn, known: OriginRules | None) -> None:
        """Write that a request may be sent now.

        Args:
            target: The URL.
            grounds: What allowed it.
            turn: Its turn.
            known: The rules of the origin, if they are remembered.

        Raises:
            StoreFailed: The journal cannot be written now: the request must not be sent.
        """
        if self._failed is not None or len(self._waiting) >= _MOST_WAITING:
            raise self._refusal(self._failed)
        if known is not None and known.grounds.meaning != grounds.meaning:
            known = None
        # Hot path: what takes longer is done in the thread.
        self._waiting.append((self._clock.wall(), "granted", target, grounds, known, None, turn.granted_at))
        if len(self._waiting) == 1:
            self._wake.set()

    def refused(self, target: Target, decision: Decision, known: OriginRules | None) -> None:
        """Write that a URL is disallowed."""
        self._add("refused", target, None if known is None else known.grounds, known, decision)

    def note(self, kind: str, **more: object) -> None:
        """Write another line: an event, or that the pacing policy declines a URL."""
        self._add(kind, more)

    def __call__(self, event: Event, /) -> None:
        """Write an event."""
        told = {name: getattr(event, name) for name in type(event).__slots__ if name != "task"}
        what = f": {told.pop('kind')}" if isinstance(event, OperatorActed) else ""
        self._add(_EVENTS[type(event)] + what, told)

    def _add(self, *entry: object) -> None:
        if self._closing or len(self._waiting) >= _MOST_WAITING:
            self._lost += 1
        else:
            self._waiting.append((self._clock.wall(), *entry))
            self._wake.set()

    def _refusal(self, error: OSError | None) -> StoreFailed:
        why = "is behind" if error is None else f"cannot be written: {error.strerror or error}"
        return StoreFailed(
            f"{self.path}: the journal {why}. No permit is given that it does not record", may_pass=True
        )

    # What the thread does.

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait()
            self._wake.clear()
            while (self._waiting or self._lines) and not self._closing:
                time.sleep(_BATCH_S if self._failed is None else _RETRY_S)
                self._attempt()
        if self._lines:
            self._attempt()
        self._attempt(last=True)

    def _attempt(self, *, last: bool = False) -> None:
        """Write what an earlier attempt left, or else what waits."""
        try:
            if not self._lines:
                self._make_lines()
            self._write()
            if last and self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
        except OSError as error:
            if last or self._failed is None:
                extra = fields("journal_failed", error=error, count=len(self._lines))
                log.error("the journal %s cannot be written: %s", self.path, error, extra=extra)  # noqa: TRY400
            self._failed = error
        else:
            self._failed = None

    def _make_lines(self) -> None:
        if self._size >= self._largest:
            rotated = archives(self.path)
            number = int(rotated[-1].suffix[1:]) + 1 if rotated else 1
            self._archive = Path(f"{self.path}.{number:06}")
            self._begin("continued", after=self._archive.name)
        for _ in range(len(self._waiting)):
            self._told_at, kind, *told = self._waiting.popleft()
            try:
                if kind in ("granted", "refused"):
                    self._decision(kind, *told)
                else:
                    self._line(kind, **told[0])
            except Exception as error:
                extra = fields("journal_failed", error=error)
                log.exception("the journal cannot record that it %s %s", kind, told[0], extra=extra)
                self._lost += 1
        if self._lost:
            self._line("lost", lines=self._lost)
            self._lost = 0

    def _decision(
        self,
        kind: str,
        target: Target,
        grounds: Grounds | None,
        known: OriginRules | None,
        decision: Decision | None,
        granted_at: float = 0.0,
    ) -> None:
        """Make the line of a decision, after one about the origin's robots.txt if that is new."""
        origin, robots = target.origin.text, None if grounds is None else grounds.meaning
        if known is not None and self._files.get(origin) != robots:
            _remember(self._files, origin, robots)
            self._robots(origin, str(robots), known)
        told: dict[str, object] = {"url": target.url, "robots": robots}
        if kind == "granted" and grounds is not None:
            decision = None if known is None else known.rules.decide(target.path)
            before = self._granted_at.get(origin)
            _remember(self._granted_at, origin, granted_at)
            told["asked_s"] = None if grounds.pace is None else grounds.pace.slowest_s
            told["kept_s"] = None if before is None else round(granted_at - before, 3)
        if decision is not None:
            rule, told["reason"] = decision.rule, decision.reason.name
            told |= {"rule": rule and str(rule).rpartition(" (line ")[0], "line": rule and rule.line}
        self._line(kind, **told)

    def _robots(self, origin: str, digest: str, known: OriginRules) -> None:
        """Make the line about a robots.txt that decides from now on. Its copy is written before the line is."""
        snapshot, result, signals = known.snapshot, known.file or known.snapshot.access, []
        received = snapshot.good_at if result is snapshot.good and snapshot.good_at else snapshot.fetched_at
        if known.file is not None:
            self._new_copies[digest] = known
            if _SIGNALS.search(body := known.file.body):
                found = parse(body, dialect=self._dialect).signals_for(self._agent)
                signals = [
                    f"{each.field}: {each.text[:_LONGEST]}" for each in found.statements[:_MOST_SIGNALS]
                ]
        about = {"status": result.status, "reason": result.reason.name, "from": result.url}
        self._line("robots", origin=origin, robots=digest, **about, received=dated(received), signals=signals)

    def _begin(self, kind: str, **more: object) -> None:
        agent, dialect = self._agent, self._dialect.name
        self._line(kind, agent=agent.header, names=agent.named, dialect=dialect, **more)

    def _line(self, kind: str, **more: object) -> None:
        told = {name: str(each)[:_LONGEST] if name == "because" else each for name, each in more.items()}
        line = {"prev": self._hash, "at": dated(self._told_at), "kind": kind, **told}
        self._lines.append(_encode(line).encode())
        self._hash = sha256(self._lines[-1]).hexdigest()

    def _write(self) -> None:
        """Write copies and lines. An attempt that failed is made good by the next one."""
        for digest, known in tuple(self._new_copies.items()):
            copy = self._copies / digest
            if known.file is not None and not copy.exists():
                self._copies.mkdir(mode=0o700, exist_ok=True)
                made = copy.with_suffix(".new")
                made.write_bytes(known.file.body)
                made.replace(copy)
            del self._new_copies[digest]
        if self._archive is not None:
            if self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
                self._file = None
            if not self._archive.exists():
                self.path.rename(self._archive)
            self._file, self._size = self._opened(), 0
            self._archive = None
        if not self._lines or self._file is None:
            return
        if self._failed is not None:
            # A full disk may have taken a part of the lines.
            os.ftruncate(self._file, self._size)
        block = b"\n".join((*self._lines, b""))
        while block:
            block = block[os.write(self._file, block) :]
        self._size = os.fstat(self._file).st_size
        self._lines.clear()

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _open(self) -> None:
        """Find the last line, and write one that follows it. Raises OSError, StoreFailed."""
        written = [
            each for each in (*archives(self.path), self.path) if each.exists() and each.stat().st_size
        ]
        # Without the file, a crash came just after it was rotated.
        after = {"after": written[-1].name} if written and written[-1] != self.path else {}
        cut: dict[str, object] = {}
        if written:
            with written[-1].open("rb") as file:
                if not file.readline(LONGEST_LINE).startswith(b'{"prev":"'):
                    raise StoreFailed(f"{written[-1]} is no journal: name another file")
            last, tail = _ends(written[-1])
            self._hash = sha256(tail or last).hexdigest()
            if tail:
                # A kill cut the line. It stays as it is: nothing is ever taken back. Of the line before it, it may say too little.
                last = last or (_ends(written[-2])[0] if len(written) > 1 else b"")
                cut = {"cut": len(tail), "whole": sha256(last).hexdigest() if last else FIRST}
                self._lines.append(b"")
        self._file = self._opened()
        self._begin("opened", **after, **cut)
        self._write()


def _ends(path: Path) -> tuple[bytes, bytes]:
    """Return the last whole line of a file, and what follows it. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2 * LONGEST_LINE))
        *_, last, tail = b"", *file.read().split(b"\n")
    return last, tail


def archives(path: Path) -> list[Path]:
    """Return the files that were rotated, the oldest first."""
    rotated = re.compile(re.escape(path.name) + r"\.[0-9]{6,}")
    found = (each for each in path.parent.iterdir() if rotated.fullmatch(each.name))
    return sorted(found, key=lambda each: int(each.suffix[1:]))


def _remember(known: dict[str, Any], origin: str, value: object) -> None:
    known.pop(origin, None)
    known[origin] = value
    if len(known) > _MOST_ORIGINS:
        del known[next(iter(known))]


def dated(wall: float) -> str:
    """Return a Unix time as lines have it: UTC, to the millisecond."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
