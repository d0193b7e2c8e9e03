"""What `polite serve` costs: CPU of its process for a permit over loopback, and memory of waiting long polls.

A permit is two requests: `POST /v1/permits`, and the report. Beside it stands, in the same run, an aiohttp handler that does
nothing, asked twice. Each server is a process of its own; the clients are in this process, on keep-alive connections. CPU is what
/proc counts for the server. Rules are known, and no turn has to be waited for. In rounds, so that both meet the same machine.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from aiohttp import web

import polite
from benchmarks.gate import robots
from polite.serve import serve

ORIGINS, CONNECTIONS, PERMITS, ROUNDS, POLLS = 200, 16, 4_000, 5, 10_000
# Microseconds of CPU a permit, permits a second, and MB with all long polls.
MOST_US, LEAST_RATE, MOST_MB = 400.0, 3_000.0, 300.0
HOSTS = [f"https://host{n}.example" for n in range(ORIGINS)]
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_HEAD = "{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


async def nothing() -> None:
    """Serve a handler that does nothing."""

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response()

    server = await asyncio.get_running_loop().create_server(web.Server(answer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


async def gate(delay: float) -> None:
    """Serve a gate whose rules are known."""
    pacing = polite.PacingPolicy(min_delay=delay)
    async with polite.open_gate("BenchBot/1.0", pacing=pacing, transports=robots(HOSTS)) as opened:
        for origin in HOSTS:
            await opened.check(f"{origin}/")
        async with serve(opened, max_connections=15_000, grace=0.0) as running:
            print(running.port, flush=True)
            await asyncio.Event().wait()


class Connection(asyncio.Protocol):
    """One keep-alive connection of a client that costs little."""

    def __init__(self) -> None:
        self.came = b""
        self.answer: asyncio.Future[bytes] | None = None
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.came += data
        head, found, body = self.came.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0]):
            self.came = b""
            assert self.answer is not None
            self.answer.set_result(body)

    def ask(self, method: str, path: str, value: object) -> asyncio.Future[bytes]:
        body = json.dumps(value)
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write((_HEAD.format(method, path, len(body)) + body).encode())
        return self.answer


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


def start(kind: str) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "benchmarks.serve", kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def permits(connection: Connection, count: int, first: int) -> None:
    for number in range(first, first + count):
        url = f"{HOSTS[number % ORIGINS]}/page/{number}"
        permit = json.loads(await connection.ask("POST", "/v1/permits", {"url": url}))
        report = {"status": 200, "headers": {"Content-Type": "text/html", "Content-Length": "12345"}}
        await connection.ask("POST", f"/v1/permits/{permit['id']}", report)


async def twice(connection: Connection, count: int, first: int) -> None:
    for _ in range(2 * count):
        await connection.ask("POST", "/", {"url": HOSTS[0]})


async def measure() -> bool:
    """Print what each costs; return whether the targets are met."""
    servers = {"nothing, twice": (*start("nothing"), twice), "a permit": (*start("gate"), permits)}
    costs: dict[str, list[float]] = {kind: [] for kind in servers}
    rates: dict[str, list[float]] = {kind: [] for kind in servers}
    connections = {
        kind: [await connect(port) for _ in range(CONNECTIONS)] for kind, (_, port, _) in servers.items()
    }
    each = PERMITS // CONNECTIONS
    for number in range(ROUNDS + 1):
        for kind, (process, _, work) in servers.items():
            before, began = cpu_s(process.pid), time.perf_counter()
            clients = enumerate(connections[kind])
            await asyncio.gather(*(work(one, each, at * each) for at, one in clients))
            if number:  # the first one warms up
                costs[kind].append((cpu_s(process.pid) - before) / PERMITS * 1e6)
                rates[kind].append(PERMITS / (time.perf_counter() - began))
    for process, _, _ in servers.values():
        process.kill()
    for kind, found in costs.items():
        cost = statistics.median(found)
        print(
            f"{kind:15} {cost:6.0f} us CPU  {1e6 / cost:6.0f}/s on one core  {max(rates[kind]):6.0f}/s seen"
        )
    process, port = start("gate-of-long-delays")
    empty = resident_mb(process.pid)
    waiting = []
    for number in range(POLLS):
        connection = await connect(port)
        waiting.append(connection.ask("POST", "/v1/permits", {"url": f"{HOSTS[0]}/{number}", "wait": 60}))
    await asyncio.sleep(2.0)
    done, used = sum(each.done() for each in waiting), resident_mb(process.pid)
    process.kill()
    print(f"{POLLS - done} long polls wait in {used:.0f} MB ({empty:.0f} MB without)")
    cost = statistics.median(costs["a permit"])
    return cost <= MOST_US and 1e6 / cost >= LEAST_RATE and used <= MOST_MB


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["nothing"]:
            asyncio.run(nothing())
        case ["gate"]:
            asyncio.run(gate(0.0))
        case ["gate-of-long-delays"]:
            asyncio.run(gate(1_000.0))
        case _:
            sys.exit(not asyncio.run(measure()))
