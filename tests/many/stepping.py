"""Runs step.lua on a real server, as one process of a crawl or another; and sets the server's stored times back."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polite.stores.redis
from polite.stores.redis.changes import Changes, Ended, PutEntry, encoded
from polite.stores.redis.step import StepReply, Taken, TaskRow
from tests.many.servers import ValkeyServer

STEP = (Path(polite.stores.redis.__file__).parent / "step.lua").read_text()
SECOND = 1_000_000
LEASE, BEAT = 60 * SECOND, 10 * SECOND
PREFIX = "polite:{test:0}:"


def digest(url: str) -> str:
    return hashlib.blake2b(url.encode(), digest_size=12).hexdigest()[:16]


def put(url, *, home=None, key=None, again=False, ready_in=None) -> PutEntry:
    origin, path = split(url)
    row = json.dumps([path, 0, 0, None, None, None, key])
    return PutEntry(home or home_of(origin), origin, digest(url), row, key, again, ready_in)


def ended(url: str, end: str = "done", *, home: str | None = None) -> Ended:
    origin, _ = split(url)
    return Ended(home or home_of(origin), origin, digest(url), end)


def split(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}", slash + path


def home_of(origin: str) -> str:
    return origin.partition("://")[2].partition(":")[0]


class Crawl:
    """A partition on a server. Processes of it are named; each counts its batches."""

    def __init__(self, server: ValkeyServer, prefix: str = PREFIX):
        self.server, self.client, self.prefix = server, server.client, prefix
        self.keyed = False

    def process(self, name: str, **fixed: Any) -> "Process":
        return Process(self, name, fixed)

    def key(self, name: str) -> str:
        return self.prefix + name

    def now(self) -> int:
        seconds, micros = self.client.time()
        return int(seconds) * SECOND + int(micros)

    def age(self, micros: int) -> None:
        """Let so much time pass: everything stored happened so much earlier."""
        self._shift_record(micros)
        for name in ("l", "later", "idle", "forget"):
            for member, score in self.client.zrange(self.key(name), 0, -1, withscores=True):
                self.client.zadd(self.key(name), {member: f"{score - micros:.0f}"})
        for key in self.client.scan_iter(self.key("x:*")):
            for member, score in self.client.zrange(key, 0, -1, withscores=True):
                self.client.zadd(key, {member: max(0, score - micros)})

    def _shift_record(self, micros: int) -> None:
        for field in ("quiet", "grace", "last", "starve"):
            if (value := self.client.hget(self.key("m"), field)) and value != "0":
                self.client.hset(self.key("m"), field, int(value) - micros)
        for session, end in self.client.hgetall(self.key("s")).items():
            self.client.hset(self.key("s"), session, int(end) - micros)
        for session, since in self.client.hgetall(self.key("roomless")).items():
            self.client.hset(self.key("roomless"), session, int(since) - micros)
        for home, row in self.client.hgetall(self.key("h")).items():
            owner, fence, since, free_at, rest = row.split(":", 4)
            since, free_at = (str(max(0, int(each) - micros)) for each in (since, free_at))
            self.client.hset(self.key("h"), home, f"{owner}:{fence}:{since}:{free_at}:{rest}")

    def expire(self, process: "Process", ago: int = SECOND) -> None:
        self.client.hset(self.key("s"), process.name, self.now() - ago)

    def another_server(self) -> None:
        self.client.hset(self.key("m"), "run", "another")

    def check(self) -> None:
        """Whatever has happened: what is stored in two places agrees."""
        record = self.client.hgetall(self.key("m"))
        tasks = {key: self.client.hgetall(key) for key in self.client.scan_iter(self.key("t:*"), count=1000)}
        assert sum(map(len, tasks.values())) == int(record.get("waiting", 0))
        met = sum(self.client.scard(key) for key in self.client.scan_iter(self.key("d:*"), count=1000))
        assert met == int(record.get("met", 0))
        later = self.client.zrange(self.key("later"), 0, -1)
        waits = {tuple(each.split("\n")[2:]) for each in later if each.startswith("t\n")}
        for key, rows in tasks.items():
            origin = key.removeprefix(self.key("t:"))
            queue = {each[-16:] for each in self.client.zrange(self.key(f"q:{origin}"), 0, -1)}
            for name in rows:
                assert (name in queue) != ((origin, name) in waits), f"{origin} {name}"
            assert queue <= rows.keys()
        homes = {home: row.split(":")[0] for home, row in self.client.hgetall(self.key("h")).items()}
        for key in self.client.scan_iter(self.key("held:*")):
            owner = key.removeprefix(self.key("held:"))
            assert all(homes[home] == owner for home in self.client.smembers(key))
        line = set(self.client.zrange(self.key("l"), 0, -1))
        assert not line & {home for home, owner in homes.items() if owner}
        for key in self.client.scan_iter(self.key("q:*"), count=1000):
            origin = key.removeprefix(self.key("q:"))
            home = self._home(origin)
            assert home in line or homes.get(home), f"{origin} has tasks, and {home} is not in line"

    def _home(self, origin: str) -> str:
        for key in self.client.scan_iter(self.key("x:*"), count=1000):
            if self.client.zscore(key, origin) is not None:
                return key.removeprefix(self.key("x:"))
        assert origin.startswith("https://"), f"{origin} is in the x of no home"
        return origin.removeprefix("https://")


class Process:
    """One process; what it holds is what replies said.

    Attributes:
        born: The crawl's name, as the replies tell it.
        fences: Its homes.
    """

    def __init__(self, crawl: Crawl, name: str, fixed: dict[str, Any]):
        self.crawl, self.name, self.fixed, self.seq = crawl, name, fixed, 0
        self.born: str | None = None
        self.fences: dict[str, int] = {}

    def step(self, *, check: bool = True, **given: Any) -> StepReply:
        """Send one batch. Lists of Changes, and what a request says beside them, are given by name."""
        reply = self.send(self.request(**given))
        if check:
            self.crawl.check()
        return reply

    def request(self, **given: Any) -> str:
        self.seq += 1
        settings: dict[str, Any] = {
            "session": self.name, "first": self.seq == 1, "seq": self.seq, "lease": LEASE, "beat": BEAT,
            "born": self.born, "newborn": f"born-{self.name}", "gate_alone": False, "keyed": self.crawl.keyed,
            "max_tries": 3, "max_done": 1_000_000, "closed": False, "bye": False, "room": 0,
        }  # fmt: skip
        given = self.fixed | given
        changes = {name: list(given.pop(name)) for name in Changes.__slots__ if name in given}
        if given.get("mine") is not None:
            given = {"mine_begins": True, "mine_ends": True} | given
        return encoded(settings | given, Changes(**changes))

    def send(self, request: str) -> StepReply:
        reply = StepReply.decode(self.crawl.client.eval(STEP, 1, self.crawl.prefix, request))
        if reply.err is None:
            self.born = reply.born
        for taken in (*reply.taken, *(each for each, _ in reply.picked)):
            self.fences[taken.home] = taken.fence
        return reply

    def put(self, *urls: str, **options: Any) -> StepReply:
        return self.step(puts=[put(url, **options) for url in urls])

    def pick(self, count: int = 50) -> dict[str, list[str]]:
        return {name: paths(rows) for _, origins in self.step(room=count).picked for name, rows in origins}

    def take(self, home: str) -> Taken | None:
        taken = self.step(takes=[home]).taken
        return taken[0] if taken else None


def paths(rows: Iterable[TaskRow]) -> list[str]:
    return [json.loads(row.text)[0] for row in rows]
