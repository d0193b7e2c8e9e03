"""`polite store`: print or delete what a crawler keeps between runs.

A store is a file of robots.txt results, the queue of a crawl, or a server that many processes share.
"""

import argparse
import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polite.cli.fetch.queue_file import FAILED, FINAL, GIVEN_UP, OPTIONS
from polite.cli.terminal import Exit, complain, counted, printable
from polite.clock import SystemClock
from polite.errors import InvalidOption, StoreFailed
from polite.frontier.sqlite.inspector import QueuedOrigin, QueueInspector, QueueTotals, is_queue
from polite.origin import Origin
from polite.robots.result import Found
from polite.stores import codec
from polite.stores.redis.address import Address, is_address
from polite.stores.robots_database import StoreInspector

if TYPE_CHECKING:
    from polite.stores.redis.inspect import OriginState, PartitionState, SharedInspector


def store(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    if is_address(options.file):
        return asyncio.run(_shared_store(options))
    _refuse(options, ": FILE is a file, and no shared store", "crawl", "yes")
    if is_queue(Path(options.file)):
        return _queue_file(options)
    return {"ls": _ls, "show": _show, "purge": _purge}[options.action](options)


def _ls(options: argparse.Namespace) -> Exit:
    _refuse(options, "", "origin", "expired", "back_offs")
    now = time.time()
    with closing(StoreInspector(options.file)) as store:
        for known in store.origins():
            _say(options, known, _line(known, now))
    return Exit.ALLOWED


def _show(options: argparse.Namespace) -> Exit:
    _refuse(options, "", "expired", "back_offs")
    origin = _origin(options)
    with closing(StoreInspector(options.file)) as store:
        known = store.origin(origin)
    if known is None:
        return _nothing(f"{options.file} has nothing about {origin}")
    body = known["body"]
    text = None if body is None else body.decode("utf-8", "replace")
    return _say(options, {**known, "body": text}, *_page_of(known, text))


def _purge(options: argparse.Namespace) -> Exit:
    name = None if options.origin is None else str(Origin.of(options.origin))
    with closing(StoreInspector(options.file, to_change=True)) as store:
        copies, back_offs = store.forget(
            name, time.time(), expired=options.expired, back_offs=options.back_offs
        )
    deleted = f"deleted: {copies} robots.txt, {counted(back_offs, 'back-off')}"
    return _say(options, {"robots": copies, "back_offs": back_offs}, deleted)


def _say(options: argparse.Namespace, known: dict[str, Any], *lines: str) -> Exit:
    """Print one object, or lines for people. Infinity becomes null, since JSON has no infinity."""
    if options.json:
        print(json.dumps({name: None if value == math.inf else value for name, value in known.items()}))
    else:
        print(*map(printable, lines), sep="\n")
    return Exit.ALLOWED


def _nothing(text: str) -> Exit:
    complain(text)
    return Exit.DISALLOWED


def _origin(options: argparse.Namespace) -> str:
    if options.origin is None:
        raise InvalidOption("ORIGIN is missing; use polite store show ORIGIN FILE")
    return str(Origin.of(options.origin))


def _refuse(options: argparse.Namespace, why: str, *names: str) -> None:
    """Refuse arguments that belong to another action, or to another kind of store."""
    for name in names:
        if getattr(options, name):
            shown = "ORIGIN" if name == "origin" else f"--{name.replace('_', '-')}"
            raise InvalidOption(f"store {options.action} takes no {shown}{why}")


def _line(known: dict[str, Any], now: float) -> str:
    """Return one line about an origin: outcome, remaining lifetime, remaining back-off."""
    parts = [known["origin"], "not fetched yet"]
    if known["outcome"] is not None:
        status = "" if known["status"] is None else f" {known['status']}"
        octets = "" if known["octets"] is None else f", {known['octets']} octets"
        parts[1] = f"{known['outcome']}{status} {known['reason']}{octets}"
    if known["expires_at"] is not None:
        left = known["expires_at"] - now
        lifetime = f"expires in {left:.0f} s" if left > 0 else f"expired {-left:.0f} s ago"
        parts.append("never expires" if left == math.inf else lifetime)
    if known["back_off_until"] is not None and known["back_off_until"] > now:
        parts.append(f"backs off for {known['back_off_until'] - now:.0f} s")
    return "  ".join(parts)


_TIMES = ("fetched_at", "expires_at", "unreachable_since", "good_at", "back_off_until")


def _page_of(known: dict[str, Any], body: str | None) -> list[str]:
    """Return all that is known about an origin, and its robots.txt."""
    lines = [known["origin"]]
    for name, value in known.items():
        if value is not None and name not in ("origin", "body"):
            lines.append(f"  {name}: {_when(value) if name in _TIMES else value}")
    return lines if body is None else [*lines, "", *body.splitlines()]


def _when(wall: float) -> str:
    try:
        return datetime.fromtimestamp(wall, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return str(wall)  # a policy may set infinity


# The queue of a crawl.


def _queue_file(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    why = f": {options.file} is the queue of a crawl, and no file of robots.txt results"
    _refuse(options, why, "expired", "back_offs")
    if options.action == "purge":
        raise InvalidOption(
            f"store purge: {options.file} is the queue of a crawl; purge its robots.txt results with "
            f"{options.file}.robots, or delete all its files to begin anew"
        )
    queue = QueueInspector(Path(options.file))
    return _ls_queue(options, queue) if options.action == "ls" else _show_queued(options, queue)


def _ls_queue(options: argparse.Namespace, queue: QueueInspector) -> Exit:
    _refuse(options, "; use polite store show ORIGIN FILE", "origin")
    now, totals, origins = time.time(), queue.totals(), queue.origins(options.limit)
    ended, seen = _ended(totals), counted(totals.origins, "origin")
    words = ", ".join(f"{count} {word}" for word, count in ended.items())
    counts = {"waiting": totals.waiting, **ended, "origins": totals.origins}
    line = f"{options.file}  {totals.waiting} waiting, {words}; {seen} seen"
    _say(options, {"queue": options.file, **counts}, line)
    for each in origins:
        _say(options, asdict(each), _queued_line(each, now))
    if (left := totals.waiting - sum(each.waiting for each in origins)) > 0 and not options.json:
        print(f"... {counted(left, 'URL')} more of other origins (--limit {options.limit})")
    return Exit.ALLOWED


def _show_queued(options: argparse.Namespace, queue: QueueInspector) -> Exit:
    origin, now = _origin(options), time.time()
    known = queue.origin(origin)
    if known is None:
        return _nothing(f"no URL of {origin} waits in {options.file}")
    tasks = queue.tasks(origin, options.limit)
    lines = [_queued_line(known, now)]
    for each in tasks:
        tries = f", {counted(each.tries, 'attempt')} so far" if each.tries else ""
        depth = f", depth {each.depth:g}" if each.depth else ""
        lines.append(f"  {each.path}  {each.state}{_in(each.ready_at, now)}{tries}{depth}")
    if (more := known.waiting - len(tasks)) > 0:
        lines.append(f"  ... {more} more (--limit {options.limit})")
    return _say(options, {**asdict(known), "tasks": [asdict(each) for each in tasks]}, *lines)


def _ended(totals: QueueTotals) -> dict[str, int]:
    """Return how many URLs ended, as the records of `polite fetch` count them if the queue is its own."""
    notes = totals.notes
    if OPTIONS not in notes:
        return {"done": totals.done, "refused": totals.refused, "dropped": totals.dropped}
    failed, given_up = notes.get(FAILED, 0), notes.get(GIVEN_UP, 0) + notes.get(FINAL, 0)
    fetched = totals.known - totals.refused - failed - given_up
    return {"fetched": fetched, "refused": totals.refused, "failed": failed, "given up": given_up}


def _queued_line(known: QueuedOrigin, now: float) -> str:
    parts = [f"{known.waiting} waiting"]
    if known.in_flight:
        # A killed crawl leaves them; the next one requests them again.
        parts.append(f"{known.in_flight} of them in flight when it ended")
    if known.delayed:
        parts.append(f"{known.delayed} of them later{_in(known.ready_at, now)}")
    if known.crawl_delay is not None:
        parts.append(f"Crawl-delay {known.crawl_delay:g} s")
    if known.failures:
        times = "once" if known.failures == 1 else f"{known.failures} times in a row"
        parts.append(f"robots.txt unreachable {times}")
    return f"{known.origin}  {', '.join(parts)}"


def _in(ready_at: float | None, now: float) -> str:
    return "" if ready_at is None else f", in {max(0.0, ready_at - now):.0f} s"


# A shared store.


# The command line does not wait for a server that is away.
_PATIENCE_S = 5.0
# Columns of a result that are bodies, or say nothing to people.
_NOT_SHOWN = ("body", "good_body", "checksum")


async def _shared_store(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    _refuse(options, ": that is for files", "expired", "back_offs")
    from polite.stores.redis.inspect import SharedInspector
    from polite.stores.redis.link import Patience
    from polite.stores.redis.opening import open_shared

    address, clock = Address.of(options.file).with_login_of(), SystemClock()
    shared = await open_shared(address, clock)
    try:
        inspector = SharedInspector(shared, Patience(address.name, clock, _PATIENCE_S))
        actions = {"ls": _ls_shared, "show": _show_shared, "purge": _purge_shared}
        return await actions[options.action](options, inspector)
    finally:
        await shared.close()


async def _ls_shared(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    _refuse(options, "; use polite store show ORIGIN URL", "origin")
    names = [options.crawl] if options.crawl is not None else await inspector.crawls(options.limit)
    if not names:
        complain("there is no crawl in this database")
    status = Exit.ALLOWED
    for name in names:
        try:
            terms, partitions = await inspector.terms(name), await inspector.partitions(name, 1)
        except StoreFailed as error:
            # One that cannot be read does not hide the others.
            complain(f"{name}: {error}")
            status = Exit.USAGE
            continue
        totals = _totals(partitions)
        _say(options, {"crawl": name, **terms, **totals}, f"{name}  {_summary_of(totals)}")
    return status


async def _show_shared(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    if options.origin is None and options.crawl is None:
        raise InvalidOption(
            "store show: use polite store show ORIGIN URL, polite store show URL --crawl NAME, or both ORIGIN and NAME"
        )
    if options.origin is not None and options.crawl is not None:
        return await _show_origin(options, inspector)
    if options.origin is not None:
        return await _show_robots(options, inspector)
    partitions = await inspector.partitions(options.crawl, options.limit)
    terms = await inspector.terms(options.crawl)
    if not options.json:
        print(f"{options.crawl}  {_summary_of(_totals(partitions))}")
        print("  " + ", ".join(f"{name} {value}" for name, value in sorted(terms.items())))
    for number, partition in enumerate(partitions):
        place = f"  {number}  " if len(partitions) > 1 else "  "
        lines = [f"{place}{line}" for line in _lines(partition, options.limit)]
        if lines or options.json:
            _say(options, {"crawl": options.crawl, "partition": number, **_object(partition)}, *lines)
    return Exit.ALLOWED


async def _show_origin(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    origin = Origin.of(options.origin)
    state = await inspector.origin(options.crawl, origin)
    if state is None:
        return _nothing(f"crawl {options.crawl} has nothing about {origin}")
    # What an operator asks first: why does this site wait?
    lines = [
        f"{origin} in crawl {options.crawl}",
        f"  tasks: {state.left} left, {state.out} of them with a worker; {state.ended} ended",
    ]
    if state.home is not None:
        lines.append(f"  home {state.home}: {_held(state)}")
        if state.delayed_s > 0:
            lines.append(f"  delayed for {state.delayed_s:.1f} s by a response, its robots.txt, or a circuit")
    if state.postponed_s is not None:
        postponed_s = max(0.0, state.postponed_s)
        lines.append(f"  robots.txt was unreachable: asked for again in {postponed_s:.1f} s")
    return _say(options, {"crawl": options.crawl, "origin": str(origin), **asdict(state)}, *lines)


def _held(state: "OriginState") -> str:
    if state.session is not None:
        ends = state.ends_s
        if ends is None or ends <= 0:
            return f"held by session {state.session}, which ended without a word"
        return f"held by session {state.session}, which ends in {ends:.1f} s unless renewed"
    if state.line_s is None:
        return "no session holds it, and it has no task that is ready"
    if state.line_s > 0:
        return f"in line, not to be taken for {state.line_s:.1f} s"
    return f"in line, ready for {-state.line_s:.1f} s, waits for a session with room"


async def _show_robots(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    origin = Origin.of(options.origin)
    snapshot, back_off = await inspector.robots(origin)
    if snapshot is None and back_off is None:
        return _nothing(f"the store has nothing about {origin}")
    known: dict[str, Any] = {"origin": str(origin)}
    if snapshot is not None:
        known |= zip(codec.COLUMNS, codec.row(str(origin), snapshot), strict=True)
    if back_off is not None:
        known |= {"back_off_until": back_off.until, "back_off_because": back_off.because}
    # The latest copy, as for a file.
    copies = () if snapshot is None else (snapshot.access, snapshot.good)
    text = next((each.body.decode("utf-8", "replace") for each in copies if isinstance(each, Found)), None)
    shown = {name: value for name, value in known.items() if name not in _NOT_SHOWN}
    return _say(options, {**shown, "body": text}, *_page_of(shown, text))


async def _purge_shared(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    if (options.origin is None) == (options.crawl is None):
        raise InvalidOption(
            "store purge: use polite store purge ORIGIN URL, or polite store purge URL --crawl NAME"
        )
    origin = None if options.origin is None else Origin.of(options.origin)
    what = f"crawl {options.crawl}" if origin is None else f"robots.txt of {origin}"
    if not options.yes:
        raise InvalidOption(f"store purge: this deletes {what} for all machines; add --yes to do it")
    deleted = await (inspector.purge(options.crawl) if origin is None else inspector.forget_robots(origin))
    return _say(options, {"deleted": deleted}, f"deleted: {what} ({counted(deleted, 'key')})")


# What each value of an entry is, by the kind of entry, in the order of `PartitionState.counts`.
_ENTRIES = {
    "sessions": ("session", "ends_in_s", "homes", "puts_no_more"),
    "held": ("home", "session", "delayed_s"),
    "line": ("home", "ready_in_s"),
    "later": ("home", "origin", "is_task", "ready_in_s"),
}
_COUNTS = ("waiting", "done", "refused", "dropped")


def _object(partition: "PartitionState") -> dict[str, Any]:
    """Return a partition with a name for each value."""
    entries = {
        kind: [dict(zip(names, each, strict=True)) for each in getattr(partition, kind)]
        for kind, names in _ENTRIES.items()
    }
    counts = {name: getattr(partition, name) for name in (*_COUNTS, "quiet_s")}
    return counts | entries | {"counts": dict(zip(_ENTRIES, partition.counts, strict=True))}


def _totals(partitions: "list[PartitionState]") -> dict[str, int]:
    totals = {name: sum(getattr(each, name) for each in partitions) for name in _COUNTS}
    sessions, held, line, later = (sum(each.counts[i] for each in partitions) for i in range(4))
    # A process has a session in each partition.
    return totals | {"sessions": -(-sessions // len(partitions)), "held": held, "line": line, "later": later}


def _summary_of(totals: dict[str, int]) -> str:
    return (
        f"{totals['waiting']} waiting, {totals['done']} done, {totals['refused']} refused, {totals['dropped']} dropped; "
        f"{counted(totals['sessions'], 'session')}, {counted(totals['held'], 'home')} held, {totals['line']} in line, "
        f"{totals['later']} later"
    )


def _lines(partition: "PartitionState", limit: int) -> Iterator[str]:
    """Yield a line about each session and each home, with what it waits for."""
    if partition.quiet_s > 0:
        yield f"quiet for {partition.quiet_s:.1f} s: the server was restarted or another took over; no home is given"
    for session, end_s, homes, closed in partition.sessions:
        end = f"ends in {end_s:.1f} s unless renewed" if end_s > 0 else f"ended {-end_s:.1f} s ago"
        yield f"session {session}  {end}  {counted(homes, 'home')}{'  puts no more' if closed else ''}"
    for home, session, rest_s in partition.held:
        yield f"held    {home}  by {session}{f'  delayed for {rest_s:.1f} s' if rest_s > 0 else ''}"
    awaited = "a session with room" if partition.sessions else "a process: none is there"
    for home, in_s in partition.line:
        why = f"delayed for {in_s:.1f} s" if in_s > 0 else f"ready for {-in_s:.1f} s, waits for {awaited}"
        yield f"line    {home}  {why}"
    for home, origin, is_task, in_s in partition.later:
        what = f"a task of {origin}" if is_task else f"{origin or home} is postponed"
        yield f"later   {what}  for {max(0.0, in_s):.1f} s"
    names = ("sessions", "held homes", "homes in line", "entries with a time")
    for kind, name, count in zip(_ENTRIES, names, partition.counts, strict=True):
        if (shown := len(getattr(partition, kind))) < count:
            yield f"...     {count - shown} more {name} (--limit {limit})"
