"""`python -m tests.system.soak_frontier [TIMES]`: kill a crawl with a frontier in a file again and again; what was lost?

Each time a process goes on with the same file: it puts URLs, fetches some, and says what was acknowledged and what it was given;
it is ended by SIGKILL at a random moment. Then nothing that was put may be missing; what was out must come back, with one try
more, and what was done must not; and no origin may be asked sooner than its delay after the last request of the run before.
"""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import polite
from polite.testing import ScriptedTransport

ROOT = Path(__file__).resolve().parents[2]
DELAY_S = 0.5
ORIGINS = 150
PUTTERS, WORKERS = 10, 40
# URLs that a run puts, at most.
MOST = 3_000

_STATES = """
    SELECT text || path, CASE WHEN number IN (SELECT number FROM out) THEN 'out' ELSE 'waits' END, tries
    FROM tasks JOIN origins ON origins.id = tasks.origin
"""


def url(number: int) -> str:
    return f"https://host{number % ORIGINS}.example/{number}"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def crawl(path: str, first: int) -> None:
    """Until killed: put and fetch, and say so. What is put and given may be said late, never early."""
    numbers = iter(range(first, first + MOST))
    pacing = polite.PacingPolicy(min_delay=DELAY_S)
    transports = {"https": ScriptedTransport()}
    async with (
        polite.open_gate("SoakBot/1.0", pacing=pacing, transports=transports) as gate,
        polite.open_frontier(gate, store=path, max_tries=1_000_000, max_active_origins=100) as frontier,
    ):
        say("opened")

        async def put() -> None:
            for number in numbers:
                await frontier.put(url(number), payload=number)
                say("put", number)

        async def work() -> None:
            async for permit in frontier:
                async with permit:
                    assert permit.url == url(permit.task.payload)
                    say("out", permit.task.payload, permit.task.tries, time.time())
                    permit.report(status=200)
                    await asyncio.sleep(0.1 * random.random())  # and here it may be killed

        await asyncio.gather(*(put() for _ in range(PUTTERS)), *(work() for _ in range(WORKERS)))


@dataclass
class Ledger:
    """What a file must hold, from what was said."""

    put: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    comebacks: dict[int, int] = field(default_factory=dict)
    queued_at: dict[str, float] = field(default_factory=dict)
    given: int = 0
    wrong: list[str] = field(default_factory=list)

    def hear(self, lines: list[str]) -> set[int]:
        """What a run said; the numbers that it was given."""
        given: set[int] = set()
        for line in lines:
            match line.split():
                case ["put", number]:
                    self.put.add(int(number))
                case ["out", number, tries, at]:
                    self.give(int(number), int(tries), float(at))
                    given.add(int(number))
        return given

    def give(self, number: int, tries: int, at: float) -> None:
        self.given += 1
        if number in self.done:
            self.wrong.append(f"{number} was done, and given out again")
        if tries != self.comebacks.get(number, 0):
            self.wrong.append(f"{number} came with {tries} tries, not {self.comebacks.get(number, 0)}")
        origin = url(number).rpartition("/")[0]
        gap = at - self.queued_at.get(origin, 0.0)
        # What is said is said a moment after the turn came, and that moment differs.
        if gap < DELAY_S - 0.02:
            self.wrong.append(f"{origin} was asked after {gap:.3f} s")
        self.queued_at[origin] = at

    def compare(self, path: Path, given: set[int]) -> None:
        """What is in the file after the kill."""
        with closing(sqlite3.connect(path)) as connection:
            states = {each[0]: each[1:] for each in connection.execute(_STATES)}
            (check,) = connection.execute("PRAGMA integrity_check").fetchone()
            (done,) = connection.execute("SELECT remembered FROM frontier").fetchone()
            (counted,) = connection.execute("SELECT waiting FROM frontier").fetchone()
        if check != "ok" or counted != len(states):
            self.wrong.append(f"integrity check: {check}; {counted} counted, {len(states)} wait")
        known = self.put | given
        finished = {number for number in known if url(number) not in states}
        if done < len(finished) or finished - self.done - given:
            self.wrong.append(f"lost: {sorted(finished - self.done - given)[:10]}")
        for number in given - finished:
            state, tries = states[url(number)]
            if state != "out" or tries != self.comebacks.get(number, 0):
                self.wrong.append(f"{number} was given out, and is {state} after {tries} tries")
        self.done |= finished
        # Those too that were written down as out and not said any more.
        for name, (state, _) in states.items():
            if state == "out":
                number = int(name.rpartition("/")[2])
                self.comebacks[number] = self.comebacks.get(number, 0) + 1


def killed(path: Path, first: int, after_s: float) -> list[str]:
    """What a process said before it was killed."""
    command = [sys.executable, "-m", "tests.system.soak_frontier", "crawl", str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        timer = threading.Timer(after_s, process.send_signal, [signal.SIGKILL])
        timer.start()
        said += process.stdout.readlines()
        timer.join()
    # The last line may have been cut short by the kill: then it was not said.
    return [line for line in said if line.endswith("\n")]


def kill(times: int) -> int:
    rng = random.Random(9309)
    ledger = Ledger()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.sqlite"
        for turn in range(times):
            # The delay passes twice before the first task goes: at the beginning, and after robots.txt.
            lines = killed(path, turn * MOST, 2 * DELAY_S * rng.random() + 1.5 * DELAY_S)
            if not lines:
                ledger.wrong.append("the process did not begin")
            else:
                ledger.compare(path, ledger.hear(lines))
            if ledger.wrong:
                print(f"kill {turn + 1}: {'; '.join(ledger.wrong[:5])}")
                return 1
    print(
        f"killed {times} times in {time.monotonic() - started:.0f} s: {len(ledger.put)} put, {ledger.given} given out, "
        f"{sum(ledger.comebacks.values())} of them out at a kill and came back once, none lost, every gap kept, integrity check ok"
    )
    return 0


def main() -> int:
    match sys.argv[1:]:
        case ["crawl", path, first]:
            asyncio.run(crawl(path, int(first)))
            return 0
        case [*times] if len(times) < 2:
            return kill(int(times[0]) if times else 100)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
