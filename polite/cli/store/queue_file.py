"""`polite store` with the queue file of a crawl: what waits in it, by origin."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from polite.cli.exit_codes import Exit
from polite.cli.fetch.queue_notes import FAILED, FINAL, GIVEN_UP, OPTIONS
from polite.cli.terminal import printable
from polite.errors import InvalidOption
from polite.frontier.sqlite.inspector import QueuedOrigin, QueuedTask, QueueInspector, QueueTotals
from polite.origin import Origin


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
            return _ls(options, queue)
        case "show":
            return _show(options, queue)
        case _:
            raise InvalidOption(
                f"store purge: {options.file} is the queue of a crawl; purge its robots.txt results with "
                f"{options.file}.robots, or delete all its files to begin anew"
            )


def _ls(options: argparse.Namespace, queue: QueueInspector) -> Exit:
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
        print(printable(_line(each, now)))
    # Without the last of many, those shown have no more in common with the totals than this.
    if (left := totals.waiting - sum(each.waiting - each.damaged for each in origins)) > 0:
        print(f"... {_number(left, 'URL')} more of other origins (--limit {options.limit})")
    return Exit.ALLOWED


def _show(options: argparse.Namespace, queue: QueueInspector) -> Exit:
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


def _line(known: QueuedOrigin, now: float) -> str:
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
    yield _line(known, now)
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
