"""`python -m tests.system.soak [kill [TIMES] | run [SECONDS] | many ...]`: what takes too long for a test.

`run`: a crawler asks a thousand good, slow and broken origins on loopback for ten minutes: memory, descriptors, tasks and threads
must stay flat, and the servers' log must show no short gap and nothing forbidden. `kill`: a process that keeps robots results is
killed again and again (the simulation kills crawls whose frontier is in a file).
`many`: eight processes share a crawl, and each fault that they must survive befalls them (tests/many/crawling.py).
Each time a crawler's process fills the same file, and says what was acknowledged; it is ended by SIGKILL at a random moment.
Then nothing that it ever said may be missing or changed, and SQLite must find the file sound.
"""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found
from polite.robots.snapshot import Snapshot, renewed
from polite.stores.sqlite import SqliteStore
from tests.many.crawling import main as run_many
from tests.system.soaking.crawl import run

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 50
# Acknowledged saves after which a process is killed, at most.
MOST = 3_000


def site(number: int) -> Origin:
    return Origin.of(f"https://host{number}.example")


def told(number: int) -> Snapshot:
    """What is kept of the origin with this number: small, and now and then large enough to be packed."""
    body = b"User-agent: *\nDisallow: /%d\n" % number * (1 if number % 50 else 1_000)
    return renewed(None, Found(body, 200, site(number).robots_url), RobotsPolicy(), 1_000.0 + number)


def rest(number: int) -> SavedBackOff:
    return SavedBackOff(1_000.0, 4e9 + number, f"status 429 of {number}")


async def fill(path: str, first: int) -> None:
    """Until killed: save, and say what was acknowledged. Every tenth origin is in back-off, too."""
    store = SqliteStore(path)
    numbers = iter(range(first, first + 10 * MOST))

    async def worker() -> None:
        for number in numbers:
            if not number % 10:
                store.hold(site(number), rest(number))
            await store.save(site(number), told(number))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def killed(path: Path, first: int, after: int) -> list[int]:
    """What a process acknowledged before it was killed."""
    command = [sys.executable, "-m", "tests.system.soak", "fill", str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    # The last line may have been cut short by the kill: then it was not said.
    return [int(line) for line in said if line.endswith("\n")]


async def missing(path: Path, numbers: list[int]) -> list[int]:
    """Which of these are not as they were acknowledged."""
    store, lost = SqliteStore(path), []
    for number in numbers:
        kept = await store.load(site(number)) == told(number)
        held = number % 10 or await store.held(site(number)) == rest(number)
        if not kept or not held:
            lost.append(number)
    await store.close()
    return lost


def kill(times: int) -> int:
    rng = random.Random(9309)
    acknowledged: list[int] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crawl.sqlite"
        for turn in range(times):
            said = killed(path, turn * 10 * MOST, rng.randrange(1, MOST))
            acknowledged += said
            # All of this turn's, and some of those before.
            lost = asyncio.run(missing(path, said + rng.sample(acknowledged, min(200, len(acknowledged)))))
            with closing(sqlite3.connect(path)) as connection:
                (check,) = connection.execute("PRAGMA integrity_check").fetchone()
            if lost or check != "ok":
                print(f"kill {turn + 1}: lost {lost}, integrity check: {check}")
                return 1
    seconds = time.monotonic() - started
    print(
        f"killed {times} times in {seconds:.0f} s: {len(acknowledged)} acknowledged, none lost, integrity check ok"
    )
    return 0


def main() -> int:
    match sys.argv[1:]:
        case ["fill", path, first]:
            asyncio.run(fill(path, int(first)))
            return 0
        case ["run", *seconds] if len(seconds) < 2:
            return asyncio.run(run(float(seconds[0]) if seconds else 600.0))
        case []:
            return kill(100) or asyncio.run(run(600.0))
        case ["many", *arguments]:
            return run_many(arguments)
        case ["kill", *times] if len(times) < 2:
            return kill(int(times[0]) if times else 100)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
