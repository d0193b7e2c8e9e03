"""`polite store`: print or delete what a crawler keeps between runs."""

import argparse
import json
import math
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from polite.cli.exit_codes import Exit
from polite.cli.store.origin_page import as_json, page
from polite.cli.store.queue_file import queue_file
from polite.cli.store.shared_store import shared_store
from polite.cli.terminal import printable
from polite.errors import InvalidOption
from polite.frontier.sqlite.inspector import is_queue
from polite.origin import Origin
from polite.stores.inspector import StoreInspector
from polite.stores.redis.address import is_address


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
