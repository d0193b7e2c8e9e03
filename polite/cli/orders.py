"""`polite hold`, `forbid`, `release`, `drop` and `holds`: an operator's orders to crawls that run, and to those to come."""

import argparse
import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from polite.cli.options import session_with
from polite.cli.terminal import Exit, complain, printable
from polite.clock import SystemClock
from polite.errors import InvalidOption, StoreFailed
from polite.gate.operator import DROP_S, Operator, OrderStore, who
from polite.orders import Order
from polite.stores.redis.address import Address, is_address

_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*([smhd]?)", re.ASCII)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_TIMEOUT_S = 10.0


def span(text: str) -> float:
    """Return the seconds of a text such as 90, 30m, 2h or 1d. Raises InvalidOption."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise InvalidOption(f"--for must be seconds, or a number with m, h or d, such as 30m, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


_Command: TypeAlias = Callable[[argparse.Namespace], Exit]


def _command(action: str) -> _Command:
    return lambda options: asyncio.run(_order(options, action))


hold: _Command = _command("hold")
forbid: _Command = _command("forbid")
drop: _Command = _command("drop")
release: _Command = _command("release")


def holds(options: argparse.Namespace) -> Exit:
    """Print the orders that stand."""
    return asyncio.run(_holds(options))


async def _order(options: argparse.Namespace, action: str) -> Exit:
    """Give an order, or end those of a pattern. Raises InvalidOption, StoreFailed."""
    _require_one(options)
    until, for_s = getattr(options, "until", None), getattr(options, "for_", None)
    if options.gate is not None:
        given = {
            "action": action,
            "pattern": options.pattern,
            "because": options.because,
            "by": who(),
            "until": None if until is None else until.timestamp(),
            "for_s": for_s,
        }
        found = await _ask(options.gate, {each: value for each, value in given.items() if value is not None})
        _print(options, [Order(**row) for row in found["orders"]], "released" if action == "release" else "")
        return Exit.ALLOWED
    async with _operator(options.store) as operator:
        if action == "release":
            _print(options, await operator.release(options.pattern, because=options.because), "released")
            return Exit.ALLOWED
        for_s = DROP_S if action == "drop" else for_s
        order = operator.order(action, options.pattern, because=options.because, until=until, for_=for_s)  # type: ignore[arg-type]
        _print(options, [await operator.give(order)])
    return Exit.ALLOWED


async def _holds(options: argparse.Namespace) -> Exit:
    _require_one(options)
    if options.gate is not None:
        orders = [Order(**row) for row in (await _ask(options.gate, None))["orders"]]
    else:
        async with _operator(options.store) as operator:
            orders = list(operator.orders.rows.values())
    _print(options, sorted(orders, key=lambda order: order.at))
    if not orders and not options.json:
        complain("no orders stand")
    return Exit.ALLOWED


def _require_one(options: argparse.Namespace) -> None:
    if (options.store is None) == (options.gate is None):
        said = "--store FILE|URL (of the crawl) or --gate URL (of polite serve) is needed, and not both"
        raise InvalidOption(said)


@asynccontextmanager
async def _operator(store: str) -> AsyncIterator[Operator]:
    """Open the orders of a store, which must exist. Raises InvalidOption, StoreFailed."""
    clock = SystemClock()
    operator = Operator(clock, lambda _: None)
    if is_address(store):
        from polite.stores.redis.opening import open_shared
        from polite.stores.redis.orders import RedisOrders

        shared = await open_shared(Address.of(store).with_login_of(), clock)
        kept: OrderStore = RedisOrders(shared.link, clock)
        close = shared.close
    else:
        from polite.stores.orders import FileOrders

        if not os.path.isfile(store):  # noqa: ASYNC240, PTH113 - of one command
            raise StoreFailed(f"--store {store}: there is no such file; name the robots store of the crawl")
        kept, close = FileOrders(Path(store)), None
    try:
        await operator.use(kept)
        yield operator
    finally:
        await operator.close()
        if close is not None:
            await close()


async def _ask(gate: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Ask a gate that `polite serve` has opened. Raises InvalidOption, StoreFailed."""
    import aiohttp

    method, timeout = "GET" if body is None else "POST", aiohttp.ClientTimeout(_TIMEOUT_S)
    try:
        async with (
            session_with(gate, timeout=timeout) as (session, url),
            session.request(method, f"{url}/v1/orders", json=body, allow_redirects=False) as response,
        ):
            text = await response.text()
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise StoreFailed(f"--gate {gate}: it is not reached: {why}") from error
    try:
        found = json.loads(text)
    except ValueError:
        found = {"error": text.strip()[:200]}
    if response.status != 200 or not isinstance(found, dict):
        wrong = InvalidOption if response.status in (400, 401, 403, 404) else StoreFailed
        raise wrong(f"--gate {gate}: {found.get('error') if isinstance(found, dict) else text[:200]}")
    return found


def _print(options: argparse.Namespace, orders: list[Order], said: str = "") -> None:
    for order in orders:
        if options.json:
            print(json.dumps(asdict(order)))
            continue
        until = "until released" if order.until is None else f"until {_shown(order.until)}"
        given = f"{_shown(order.at)} by {order.by}: {order.because}"
        told = f"{order.pattern}: {order.kind} of {given}" if said else f"{order.pattern}  {until}  {given}"
        print(printable(f"{said or order.kind:8} {told}"))


def _shown(wall: float) -> str:
    now = time.time()
    text = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%MZ")
    return text[11:] if 0 <= wall - now < 43_200 else text
