"""`polite store`: print or delete what a crawler keeps between runs."""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polite.cli.fetch.queue_file import FAILED, FINAL, GIVEN_UP, OPTIONS
from polite.cli.store.origin_page import as_json, page
from polite.cli.store.shared_store import shared_store
from polite.cli.terminal import Exit, printable
from polite.errors import InvalidOption
from polite.frontier.sqlite.inspector import QueuedOrigin, QueuedTask, QueueInspector, QueueTotals, is_queue
from polite.origin import Origin
from polite.stores.inspector import StoreInspector
from polite.stores.redis.address import is_address


def queue_file(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    for name in ("expired", "back_offs"):
        if getattr(options, name):
            raise InvalidOption(
                f"store {options.action}: --{name.replace('_', '-')} is for a file of robots.txt results, and "
                f"{options.file} is the queue of a crawl"
            )
    queue = QueueInspector(Path(options.file))
    match options.action:
        case "ls":
            return _ls_queue(options, queue)
        case "show":
            return _show_queued(options, queue)
        case _:
            raise InvalidOption(
                f"store purge: {options.file} is the queue of a crawl; purge its robots.txt results with "
                f"{options.file}.robots, or delete all its files to begin anew"
            )


def _ls_queue(options: argparse.Namespace, queue: QueueInspector) -> Exit:
    if options.origin is not None:
        raise InvalidOption("store ls takes no ORIGIN; use polite store show ORIGIN FILE")
    now, totals, origins = time.time(), queue.totals(), queue.origins(options.limit)
    if options.json:
        counts = {"waiting": totals.waiting, **_ended(totals), "origins": totals.origins}
        print(json.dumps({"queue": options.file, **counts}))
        for each in origins:
            print(json.dumps(asdict(each)))
        return Exit.ALLOWED
    print(printable(f"{options.file}  {_summary(totals)}"))
    for each in origins:
        print(printable(_queued_line(each, now)))
    # Without the last of many, those shown have no more in common with the totals than this.
    if (left := totals.waiting - sum(each.waiting - each.damaged for each in origins)) > 0:
        print(f"... {_number(left, 'URL')} more of other origins (--limit {options.limit})")
    return Exit.ALLOWED


def _show_queued(options: argparse.Namespace, queue: QueueInspector) -> Exit:
    if options.origin is None:
        raise InvalidOption("ORIGIN is missing; use polite store show ORIGIN FILE")
    origin = str(Origin.of(options.origin))
    known = queue.origin(origin)
    if known is None:
        print(f"polite: no URL of {origin} waits in {options.file}", file=sys.stderr)
        return Exit.DISALLOWED
    tasks = queue.tasks(origin, options.limit)
    if options.json:
        print(json.dumps({**asdict(known), "tasks": [asdict(each) for each in tasks]}))
        return Exit.ALLOWED
    for line in _page(known, tasks, options.limit, time.time()):
        print(printable(line))
    return Exit.ALLOWED


def _summary(totals: QueueTotals) -> str:
    ended = ", ".join(f"{count} {word}" for word, count in _ended(totals).items())
    return f"{totals.waiting} waiting, {ended}; {_number(totals.origins, 'origin')} seen"


def _ended(totals: QueueTotals) -> dict[str, int]:
    """Return how many URLs ended, as the records of `polite fetch` count them if the queue is its own."""
    notes = totals.notes
    if OPTIONS not in notes:
        return {"done": totals.done, "refused": totals.refused, "dropped": totals.dropped}
    failed, given_up = notes.get(FAILED, 0), notes.get(GIVEN_UP, 0) + notes.get(FINAL, 0)
    fetched = totals.known - totals.refused - failed - given_up
    return {"fetched": fetched, "refused": totals.refused, "failed": failed, "given up": given_up}


def _queued_line(known: QueuedOrigin, now: float) -> str:
    parts = [f"{known.waiting - known.damaged} waiting"]
    if known.in_flight:
        # A killed crawl leaves them; the next one requests them again.
        parts.append(f"{known.in_flight} of them in flight when it ended")
    if known.delayed:
        parts.append(f"{known.delayed} of them later{_in(known.ready_at, now)}")
    if known.damaged:
        parts.append(f"{known.damaged} damaged and set aside")
    if known.crawl_delay is not None:
        parts.append(f"Crawl-delay {known.crawl_delay:g} s")
    if known.failures:
        times = "once" if known.failures == 1 else f"{known.failures} times in a row"
        parts.append(f"robots.txt unreachable {times}")
    return f"{known.origin}  {', '.join(parts)}"


def _page(known: QueuedOrigin, tasks: list[QueuedTask], limit: int, now: float) -> Iterator[str]:
    yield _queued_line(known, now)
    for each in tasks:
        tries = f", {_number(each.tries, 'attempt')} so far" if each.tries else ""
        depth = f", depth {each.depth:g}" if each.depth else ""
        yield f"  {each.path}  {each.state}{_in(each.ready_at, now)}{tries}{depth}"
    if (more := known.waiting - len(tasks)) > 0:
        yield f"  ... {more} more (--limit {limit})"


def _in(ready_at: float | None, now: float) -> str:
    return "" if ready_at is None else f", in {max(0.0, ready_at - now):.0f} s"


def _number(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def store(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
    if is_address(options.file):
        return shared_store(options)
    for name in ("crawl", "yes"):
        if getattr(options, name):
            raise InvalidOption(
                f"store {options.action}: --{name} is for the URL of a shared store, and FILE is a file"
            )
    if is_queue(Path(options.file)):
        return queue_file(options)
    match options.action:
        case "ls":
            return _ls(options)
        case "show":
            return _show(options)
        case _:
            return _purge(options)


def _ls(options: argparse.Namespace) -> Exit:
    _refuse(options, "origin", "expired", "back_offs")
    now = time.time()
    with closing(StoreInspector(options.file)) as store:
        for known in store.origins():
            print(as_json(known) if options.json else _line(known, now))
    return Exit.ALLOWED


def _show(options: argparse.Namespace) -> Exit:
    _refuse(options, "expired", "back_offs")
    if options.origin is None:
        raise InvalidOption("ORIGIN is missing; use polite store show ORIGIN FILE")
    origin = str(Origin.of(options.origin))
    with closing(StoreInspector(options.file)) as store:
        known = store.origin(origin)
    if known is None:
        print(f"polite: {options.file} has nothing about {origin}", file=sys.stderr)
        return Exit.DISALLOWED
    body = known["body"]
    text = None if body is None else body.decode("utf-8", "replace")
    print(as_json({**known, "body": text}) if options.json else page(known, text))
    return Exit.ALLOWED


def _purge(options: argparse.Namespace) -> Exit:
    name = None if options.origin is None else str(Origin.of(options.origin))
    with closing(StoreInspector(options.file, to_change=True)) as store:
        copies, back_offs = store.forget(
            name, time.time(), expired=options.expired, back_offs=options.back_offs
        )
    print(
        json.dumps({"robots": copies, "back_offs": back_offs})
        if options.json
        else f"deleted: {copies} robots.txt, {back_offs} {'back-off' if back_offs == 1 else 'back-offs'}"
    )
    return Exit.ALLOWED


def _refuse(options: argparse.Namespace, *names: str) -> None:
    """Refuse arguments that belong to another action."""
    for name in names:
        if getattr(options, name):
            shown = "ORIGIN" if name == "origin" else f"--{name.replace('_', '-')}"
            raise InvalidOption(f"store {options.action} takes no {shown}")


def _line(known: dict[str, Any], now: float) -> str:
    """Return one line about an origin: outcome, remaining lifetime, remaining back-off."""
    parts = [known["origin"], _outcome(known)]
    if known["expires_at"] is not None:
        left = known["expires_at"] - now
        parts.append(_lifetime(left))
    if known["back_off_until"] is not None and known["back_off_until"] > now:
        parts.append(f"backs off for {known['back_off_until'] - now:.0f} s")
    return printable("  ".join(parts))


def _lifetime(left_s: float) -> str:
    if left_s == math.inf:
        return "never expires"
    return f"expires in {left_s:.0f} s" if left_s > 0 else f"expired {-left_s:.0f} s ago"


def _outcome(known: dict[str, Any]) -> str:
    if known["outcome"] is None:
        return "not fetched yet"
    status = "" if known["status"] is None else f" {known['status']}"
    octets = "" if known["octets"] is None else f", {known['octets']} octets"
    return f"{known['outcome']}{status} {known['reason']}{octets}"
