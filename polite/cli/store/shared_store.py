"""`polite store` with the URL of a shared store: crawls, their sessions, what waits and why."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from polite.cli.terminal import printable

if TYPE_CHECKING:
    from polite.stores.redis.inspector import OriginState
import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from polite.cli.store.origin_page import as_json, page
from polite.cli.terminal import Exit
from polite.clock import SystemClock
from polite.errors import InvalidOption, StoreFailed
from polite.origin import Origin
from polite.robots.result import Found
from polite.stores import codec
from polite.stores.redis.address import Address

if TYPE_CHECKING:
    from polite.stores.redis.inspector import PartitionState, SharedInspector


def origin_lines(origin: str, crawl: str, state: "OriginState") -> Iterator[str]:
    """Yield what an operator asks first: why does this site wait?"""
    yield printable(f"{origin} in crawl {crawl}")
    yield f"  tasks: {state.left} left, {state.out} of them with a worker; {state.ended} ended"
    if state.home is not None:
        yield printable(f"  home {state.home}: {_held(state)}")
        if state.delayed_s > 0:
            yield f"  delayed for {state.delayed_s:.1f} s by a response, its robots.txt, or a circuit"
    if state.postponed_s is not None:
        yield f"  robots.txt was unreachable: asked for again in {max(0.0, state.postponed_s):.1f} s"


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


# The command line does not wait for a server that is away.
_PATIENCE_S = 5.0
# Columns of a result that are bodies, or say nothing to people.
_NOT_SHOWN = ("body", "good_body", "checksum")


def shared_store(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    for name in ("expired", "back_offs"):
        if getattr(options, name):
            raise InvalidOption(f"store {options.action}: --{name.replace('_', '-')} is for files alone")
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> Exit:
    async with _inspector(options.file) as inspector:
        match options.action:
            case "ls":
                return await _ls(options, inspector)
            case "show":
                return await _show(options, inspector)
            case _:
                return await _purge(options, inspector)


@asynccontextmanager
async def _inspector(url: str) -> "AsyncIterator[SharedInspector]":
    from polite.stores.redis.inspector import SharedInspector
    from polite.stores.redis.opening import open_shared
    from polite.stores.redis.patience import Patience

    address, clock = Address.of(url).with_login_of(), SystemClock()
    shared = await open_shared(address, clock)
    try:
        yield SharedInspector(shared, Patience(address.name, clock, _PATIENCE_S))
    finally:
        await shared.close()


async def _ls(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    if options.origin is not None:
        raise InvalidOption("store ls takes no ORIGIN; use polite store show ORIGIN URL")
    names = [options.crawl] if options.crawl is not None else await inspector.crawls(options.limit)
    if not names:
        print("polite: there is no crawl in this database", file=sys.stderr)
    results = [await _ls_one(name, inspector, as_json=options.json) for name in names]
    return max(results, default=Exit.ALLOWED)


async def _ls_one(name: str, inspector: "SharedInspector", *, as_json: bool) -> Exit:
    """Print a crawl. One that cannot be read does not hide the others."""
    try:
        terms, partitions = await inspector.terms(name), await inspector.partitions(name, 1)
    except StoreFailed as error:
        print(f"polite: {name}: {error}", file=sys.stderr)
        return Exit.USAGE
    totals = _totals(partitions)
    print(json.dumps({"crawl": name, **terms, **totals}) if as_json else f"{name}  {_summary(totals)}")
    return Exit.ALLOWED


async def _show(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
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
    if options.json:
        for number, partition in enumerate(partitions):
            print(json.dumps({"crawl": options.crawl, "partition": number, **_object(partition)}))
        return Exit.ALLOWED
    print(f"{options.crawl}  {_summary(_totals(partitions))}")
    print("  " + ", ".join(f"{name} {value}" for name, value in sorted(terms.items())))
    for number, partition in enumerate(partitions):
        for line in _lines(partition, options.limit):
            print(f"  {number}  {line}" if len(partitions) > 1 else f"  {line}")
    return Exit.ALLOWED


async def _show_origin(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    origin = Origin.of(options.origin)
    state = await inspector.origin(options.crawl, origin)
    if state is None:
        print(f"polite: crawl {options.crawl} has nothing about {origin}", file=sys.stderr)
        return Exit.DISALLOWED
    if options.json:
        print(json.dumps({"crawl": options.crawl, "origin": str(origin), **asdict(state)}))
        return Exit.ALLOWED
    for line in origin_lines(str(origin), options.crawl, state):
        print(line)
    return Exit.ALLOWED


async def _show_robots(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    origin = Origin.of(options.origin)
    snapshot, back_off = await inspector.robots(origin)
    if snapshot is None and back_off is None:
        print(f"polite: the store has nothing about {origin}", file=sys.stderr)
        return Exit.DISALLOWED
    known: dict[str, Any] = {"origin": str(origin)}
    if snapshot is not None:
        known |= zip(codec.COLUMNS, codec.row(str(origin), snapshot), strict=True)
    if back_off is not None:
        known |= {"back_off_until": back_off.until, "back_off_because": back_off.because}
    # The latest copy, as for a file.
    copy = (
        None if snapshot is None else snapshot.access if isinstance(snapshot.access, Found) else snapshot.good
    )
    text = copy.body.decode("utf-8", "replace") if isinstance(copy, Found) else None
    shown = {name: value for name, value in known.items() if name not in _NOT_SHOWN}
    print(as_json({**shown, "body": text}) if options.json else page(shown, text))
    return Exit.ALLOWED


async def _purge(options: argparse.Namespace, inspector: "SharedInspector") -> Exit:
    if (options.origin is None) == (options.crawl is None):
        raise InvalidOption(
            "store purge: use polite store purge ORIGIN URL, or polite store purge URL --crawl NAME"
        )
    what = (
        f"crawl {options.crawl}" if options.origin is None else f"robots.txt of {Origin.of(options.origin)}"
    )
    if not options.yes:
        raise InvalidOption(f"store purge: this deletes {what} for all machines; add --yes to do it")
    if options.origin is not None:
        deleted = await inspector.forget_robots(Origin.of(options.origin))
    else:
        deleted = await inspector.purge(options.crawl)
    keys = "1 key" if deleted == 1 else f"{deleted} keys"
    print(json.dumps({"deleted": deleted}) if options.json else f"deleted: {what} ({keys})")
    return Exit.ALLOWED


def _object(partition: "PartitionState") -> dict[str, Any]:
    """Return a partition with a name for each value."""

    def named(names: str, entries: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return [dict(zip(names.split(), each, strict=True)) for each in entries]

    (counts,) = named("sessions held line later", [partition.counts])
    return {
        "waiting": partition.waiting,
        "done": partition.done,
        "refused": partition.refused,
        "dropped": partition.dropped,
        "quiet_s": partition.quiet_s,
        "sessions": named("session ends_in_s homes puts_no_more", partition.sessions),
        "held": named("home session delayed_s", partition.held),
        "line": named("home ready_in_s", partition.line),
        "later": named("home origin is_task ready_in_s", partition.later),
        "counts": counts,
    }


def _totals(partitions: "list[PartitionState]") -> dict[str, int]:
    names = ("waiting", "done", "refused", "dropped")
    totals = {name: sum(getattr(each, name) for each in partitions) for name in names}
    sessions, held, line, later = (sum(each.counts[i] for each in partitions) for i in range(4))
    # A process has a session in each partition.
    return totals | {"sessions": -(-sessions // len(partitions)), "held": held, "line": line, "later": later}


def _summary(totals: dict[str, int]) -> str:
    return (
        f"{totals['waiting']} waiting, {totals['done']} done, {totals['refused']} refused, {totals['dropped']} dropped; "
        f"{_number(totals['sessions'], 'session')}, {_number(totals['held'], 'home')} held, {totals['line']} in line, "
        f"{totals['later']} later"
    )


def _lines(partition: "PartitionState", limit: int) -> Iterator[str]:
    """Yield a line about each session and each home, with what it waits for."""
    if partition.quiet_s > 0:
        yield f"quiet for {partition.quiet_s:.1f} s: the server was restarted or another took over; no home is given"
    for session, end_s, homes, closed in partition.sessions:
        end = f"ends in {end_s:.1f} s unless renewed" if end_s > 0 else f"ended {-end_s:.1f} s ago"
        yield f"session {session}  {end}  {_number(homes, 'home')}{'  puts no more' if closed else ''}"
    for home, session, rest_s in partition.held:
        yield printable(
            f"held    {home}  by {session}{f'  delayed for {rest_s:.1f} s' if rest_s > 0 else ''}"
        )
    awaited = "a session with room" if partition.sessions else "a process: none is there"
    for home, in_s in partition.line:
        why = f"delayed for {in_s:.1f} s" if in_s > 0 else f"ready for {-in_s:.1f} s, waits for {awaited}"
        yield printable(f"line    {home}  {why}")
    for home, origin, is_task, in_s in partition.later:
        what = f"a task of {origin}" if is_task else f"{origin or home} is postponed"
        yield printable(f"later   {what}  for {max(0.0, in_s):.1f} s")
    shown_of = {
        "sessions": len(partition.sessions),
        "held homes": len(partition.held),
        "homes in line": len(partition.line),
        "entries with a time": len(partition.later),
    }
    for (name, shown), count in zip(shown_of.items(), partition.counts, strict=True):
        if count > shown:
            yield f"...     {count - shown} more {name} (--limit {limit})"


def _number(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
