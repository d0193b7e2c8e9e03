"""`polite store`: print or delete what a crawler keeps between runs."""

import argparse
import json
import math
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from polite.cli.exit_codes import Exit
from polite.errors import InvalidOption
from polite.origin import Origin
from polite.stores.inspector import StoreInspector

_TIMES = ("fetched_at", "expires_at", "unreachable_since", "good_at", "back_off_until")


def store(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, StoreFailed."""
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
            print(_json(known) if options.json else _line(known, now))
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
    print(_json({**known, "body": text}) if options.json else _page(known, text))
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


def _json(known: dict[str, Any]) -> str:
    """Infinity becomes null, since JSON has no infinity."""
    return json.dumps({name: None if value == math.inf else value for name, value in known.items()})


def _line(known: dict[str, Any], now: float) -> str:
    """Return one line about an origin: outcome, remaining lifetime, remaining back-off."""
    parts = [known["origin"], _outcome(known)]
    if known["expires_at"] is not None:
        left = known["expires_at"] - now
        parts.append(_lifetime(left))
    if known["back_off_until"] is not None and known["back_off_until"] > now:
        parts.append(f"backs off for {known['back_off_until'] - now:.0f} s")
    return _printable("  ".join(parts))


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


def _page(known: dict[str, Any], body: str | None) -> str:
    """Return all that is known about an origin, and its robots.txt."""
    lines = [known["origin"]]
    for name, value in known.items():
        if value is not None and name not in ("origin", "body"):
            lines.append(_printable(f"  {name}: {_when(value) if name in _TIMES else value}"))
    if body is not None:
        lines += ["", *map(_printable, body.splitlines())]
    return "\n".join(lines)


def _when(wall: float) -> str:
    try:
        return datetime.fromtimestamp(wall, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return str(wall)  # a policy may set infinity


def _printable(text: str) -> str:
    """Escape control characters, which a site could send to control the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)
