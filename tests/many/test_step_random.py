"""step.lua under random batches of several processes that die, come late and meet another server."""

import random

import pytest

from polite.stores.redis.changes import Back, Changes, Hold, Leave, Load, Out, Postpone, Requeued
from polite.stores.redis.step import Mine
from polite.stores.redis.step_reply import StepReply
from tests.many.stepping import LEASE, SECOND, Crawl, Process, digest, ended, put

HOMES = ("a.example", "b.example", "c.example")
ORIGINS = {"https://{}": 4, "http://{}": 1, "https://{}:8443": 1}


class Model:
    """What must hold for all processes together: who may send to a home, and which URLs were put and have ended."""

    def __init__(self, crawl: Crawl, seed: int):
        self.crawl, self.random = crawl, random.Random(seed)
        self.processes: list[Process] = []
        self.born = 0
        self.put_urls: set[str] = set()
        self.ended_urls: set[str] = set()
        self.by_digest: dict[str, str] = {}

    def run(self, steps: int) -> None:
        for _ in range(steps):
            while len(self.processes) < 3:
                self.born += 1
                self.processes.append(self.crawl.process(f"p{self.born}", max_tries=100, max_done=10_000))
            self.random.choices((self.step, self.die, self.wait, self.fail_over), (60, 2, 8, 1))[0]()

    def step(self) -> None:
        process = self.random.choice(self.processes)
        given = self.changes(process)
        if self.random.random() < 0.1:
            given["mine"] = [Mine(*each) for each in process.fences.items()]
        request = process.request(room=self.random.choice((0, 1, 3)), **given)
        reply = process.send(request)
        self.crawl.check()
        assert reply.err is None
        for entry, number in zip(request.changes.puts, reply.puts, strict=True):
            self.put_urls |= {self.by_digest[entry.digest]} if number else set()
        self.ended_urls |= {self.by_digest[each.digest] for each in request.changes.ended}
        self.follow(process, reply, request.changes)
        if request.mine is not None:
            # Its answer may be lost all the same, and it came once.
            assert process.send(request).err in ("old", None)
        self.check_owners()

    def follow(self, process: Process, reply: StepReply, changes: Changes) -> None:
        if reply.lost:
            process.fences.clear()
            process.name += "'"
            process.seq = 0
            return
        for leave in changes.leaves:
            if leave.home not in {taken.home for taken, _ in reply.picked} | {
                each.home for each in reply.taken
            }:
                process.fences.pop(leave.home, None)
        for home in reply.gone:
            process.fences.pop(home, None)

    def check_owners(self) -> None:
        """At most one process believes to hold a home under the fence that is stored."""
        for home in HOMES:
            row = self.crawl.client.hget(self.crawl.key("h"), home)
            if row is None:
                continue
            owner, fence, *_ = row.split(":")
            believers = [each.name for each in self.processes if each.fences.get(home) == int(fence)]
            assert believers in ([], [owner]), f"{home}: {believers} believe, {row}"

    def url(self) -> str:
        home = self.random.choice(HOMES)
        origin = self.random.choices(list(ORIGINS), list(ORIGINS.values()))[0].format(home)
        url = f"{origin}/{self.random.randrange(12)}"
        self.by_digest[digest(url)] = url
        return url

    def changes(self, process: Process) -> dict[str, list[object]]:
        given: dict[str, list[object]] = {}
        for _ in range(self.random.randrange(5)):
            name, entry = self.random.choice(self.kinds(process))
            given.setdefault(name, []).append(entry)
        return given

    def kinds(self, process: Process) -> list[tuple[str, object]]:
        url = self.url()
        origin, home = url.rpartition("/")[0], url.split("/")[2].partition(":")[0]
        fence = process.fences.get(home, 1)
        task = (origin, digest(url))
        later = self.random.choice((None, None, SECOND, 20 * SECOND))
        kinds: list[tuple[str, object]] = [
            ("puts", put(url, ready_in=later, key=self.random.choice((None, 1.0, -2.5)))),
            ("puts", put(url, again=True)),
            ("ended", ended(url, self.random.choice(("done", "refused", "dropped")))),
            ("requeued", Requeued(home, *task, 1, later)),
            ("outs", Out(home, fence, *task)),
            ("backs", Back(home, fence, *task)),
            ("holds", Hold(home, fence, 5 * SECOND, None)),
            ("postpones", Postpone(home, fence, origin, 5 * SECOND)),
            ("loads", Load(home, fence, origin, 5)),
            ("takes", home),
        ]
        if home in process.fences:
            kinds.append(("leaves", Leave(home, fence, self.random.choice((0, 3 * SECOND)), None)))
        return kinds

    def die(self) -> None:
        process = self.processes.pop(self.random.randrange(len(self.processes)))
        if self.crawl.client.hexists(self.crawl.key("s"), process.name):
            self.crawl.expire(process)

    def wait(self) -> None:
        self.crawl.age(self.random.choice((SECOND, 5 * SECOND, LEASE // 3)))

    def fail_over(self) -> None:
        self.crawl.another_server()

    def finish(self) -> None:
        """One process alone gets all tasks that were put and have not ended, each once."""
        for process in self.processes:
            self.crawl.expire(process, ago=2 * LEASE)
        last = self.crawl.process("last", max_tries=100)
        seen: list[str] = []
        for _ in range(60):
            reply = last.step(room=9)
            fresh = [origin for _, origins in reply.picked for origin in origins]
            fresh += [(origin, rows) for _, origin, rows in reply.news]
            urls = {self.by_digest[row.digest] for _, rows in fresh for row in rows} - set(seen)
            seen += sorted(urls)
            last.step(ended=[ended(url, home=url.split("/")[2].partition(":")[0]) for url in urls])
            self.crawl.age(LEASE // 4)
        assert set(seen) >= self.put_urls - self.ended_urls
        assert last.step().waiting == 0


@pytest.mark.slow("random steps", fast=1)
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_and_no_home_has_two_owners(crawl: Crawl, seed: int, *, keyed: bool) -> None:
    crawl.keyed = keyed
    model = Model(crawl, seed)

    model.run(100)
    model.finish()
