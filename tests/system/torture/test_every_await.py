"""Each await of gate, origins, flight, fetch, pacer and store fails once, on every path of the demo and of broken hosts."""

import ast
import asyncio
import itertools
from collections import Counter
from pathlib import Path as File
from tempfile import TemporaryDirectory

import pytest

from tests.system.torture.crawl import Crawl, open_files
from tests.system.torture.loop import PatientLoop
from tests.system.torture.saboteur import ROOT, Failure, Place, Saboteur
from tests.system.torture.scenes import ALL, CHARGED, LATER, NESTED, OTHER_CALLS, REPLACED, SCENES, SHARED
from tests.system.torture.stores import STORES, Opening, filled
from tests.system.torture.web import CHANGED, CLOSED, HOSTILE, MOVING, ONE_ADDRESS, PATHS, PAUSED, Path

# Thousands of crawls, most of whose time would be the disk's: what is written here need not outlive the machine.
IN_MEMORY = File("/dev/shm") if File("/dev/shm").is_dir() else None


def crawled(path: Path, scene: str, store: Opening, saboteur: Saboteur) -> None:
    """One crawl on a loop of its own, after which no descriptor is open that was not before."""

    async def main(folder: File) -> None:
        await Crawl(path, lambda: store(folder), saboteur).play(ALL[scene])

    before = open_files()
    with TemporaryDirectory(dir=IN_MEMORY) as folder, asyncio.Runner(loop_factory=PatientLoop) as runner:
        try:
            runner.run(main(File(folder)))
        except BaseException as error:
            error.add_note(f"{saboteur.failure} at {saboteur.at}: {saboteur.struck_at}, {saboteur.victim}")
            raise
    assert open_files() == before, "a descriptor is left open"


def tortured(path: Path, scene: str, store: Opening, failure: Failure) -> None:
    """Crawl again and again, until an await later than the last would have to fail."""
    for at in itertools.count():
        saboteur = Saboteur(at, failure)
        crawled(path, scene, store, saboteur)
        if saboteur.victim is None:
            assert at
            return


FAILURES = pytest.mark.parametrize("failure", Failure, ids=lambda f: f.name)
BUSY, TWO = (path for path in PATHS if path.name in ("busy.test", "two at a time"))


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_nothing_is_stuck_lost_or_wrongly_allowed_when_an_await_fails(path: Path, failure: Failure) -> None:
    tortured(path, "gate", STORES["memory"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_nor_with_a_store_in_a_file(path: Path) -> None:
    tortured(path, "gate", STORES["file"], Failure.CANCEL)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("scene", SCENES)
def test_nor_without_a_store(scene: str, failure: Failure) -> None:
    tortured(BUSY, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("scene", SCENES)
def test_nor_when_gates_are_closed_and_askers_leave(scene: str, store: str, failure: Failure) -> None:
    tortured(TWO, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize(
    ("path", "store"),
    [(TWO, "none"), (TWO, "file"), (CLOSED, "none")],
    ids=["two", "two and a file", "closed"],
)
@pytest.mark.parametrize("scene", OTHER_CALLS)
def test_nor_by_other_calls(scene: str, path: Path, store: str, failure: Failure) -> None:
    tortured(path, scene, STORES[store], failure)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> File:
    """A file with what a crawl of two hosts left, one of them with a large robots.txt."""
    name = tmp_path_factory.mktemp("filled") / "crawl.sqlite"
    crawled(TWO, "gate", lambda _: str(name), Saboteur())
    return name


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("scene", ["gate", "frontier"])
def test_nor_when_the_store_knew_already(template: File, scene: str, failure: Failure) -> None:
    tortured(TWO, scene, filled(template), failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("path", [CHANGED, PAUSED], ids=lambda p: p.name)
@pytest.mark.parametrize("scene", LATER)
def test_nor_when_what_is_known_is_asked_for_again(
    scene: str, path: Path, store: str, failure: Failure
) -> None:
    tortured(path, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("scene", SHARED)
def test_nor_when_another_crawler_was_told_since(scene: str, store: str, failure: Failure) -> None:
    tortured(CHANGED, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("path", [CLOSED, MOVING, ONE_ADDRESS], ids=lambda p: p.name)
@pytest.mark.parametrize("scene", SCENES)
def test_nor_when_turns_wait_for_opening_hours_and_addresses(
    scene: str, path: Path, failure: Failure
) -> None:
    tortured(path, scene, STORES["none"], failure)


@FAILURES
@pytest.mark.parametrize("scene", NESTED)
def test_nor_when_a_task_would_wait_for_itself(scene: str, failure: Failure) -> None:
    tortured(ONE_ADDRESS, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("scene", CHARGED)
def test_nor_when_requests_were_sent_without_permits(scene: str, failure: Failure) -> None:
    tortured(ONE_ADDRESS, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("scene", LATER)
def test_nor_when_addresses_are_asked_for_again(scene: str, failure: Failure) -> None:
    tortured(ONE_ADDRESS, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("store", ["none", "file"])
@pytest.mark.parametrize("scene", SCENES)
def test_nor_when_a_thread_decides_about_long_urls(scene: str, store: str, failure: Failure) -> None:
    tortured(HOSTILE, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=4)
@FAILURES
@pytest.mark.parametrize("store", ["none", "file"])
@pytest.mark.parametrize("path", [CHANGED, HOSTILE], ids=lambda p: p.name)
@pytest.mark.parametrize("scene", REPLACED)
def test_nor_when_rules_are_replaced_before_a_permit_is_entered(
    scene: str, path: Path, store: str, failure: Failure
) -> None:
    tortured(path, scene, STORES[store], failure)


# Awaits of what never suspends there: they cannot fail.
NEVER_SUSPEND = {
    "gate/gate.py: await self.services.turns.close()",
    "gate/turns.py: await self.pacer.close()",
    # A URL at a time here; it waits where `put` waits.
    "frontier/frontier.py: await self._puts.many(urls, draft_of(**options), again=again, wait=wait)",
    "frontier/puts.py: await self.offered(url, draft, again=again, wait=wait)",
    "frontier/puts.py: await _admissions(batch)",
    "frontier/puts.py: await _admissions(offers)",
    "frontier/puts.py: await _admissions(offers) (2)",
    "frontier/puts.py: await asyncio.sleep(0)",
    "frontier/puts.py: await asyncio.sleep(0) (2)",
    # Every 500 tasks of one origin, so that others run.
    "frontier/task_rules.py: await asyncio.sleep(0)",
    "frontier/task_rules.py: await asyncio.sleep(0) (2)",
    "frontier/task_rules.py: await asyncio.sleep(0) (3)",
    # Entered only while one is free; what waits for a free one is `acquire`.
    "gate/robots_fetcher.py: await self._connections.acquire()",
    # Entering and leaving are done at once.
    "gate/robots_fetcher.py: async with asyncio.timeout(left_s)",
    # Rules that expired, or were replaced and forgotten, while a thread decided: here no time passes meanwhile.
    # tests/gate/test_rules_replaced_meanwhile.py has them expire.
    "gate/services.py: await self.learn(target)",
    # The copy from before the failure has been read.
    "gate/rules_source.py: await self._reader.rules_of(origin, latest, known)",
    # What was fetched has been read. Only a large copy that another gate saved during a failure would be read here.
    "gate/rules_source.py: await self._reader.rules_of(origin, snapshot, before, read=read)",
    # A copy that another gate could not refresh is read in a thread if it is large.
    "gate/rules_reader.py: await self.rules_of(origin, good, before)",
    # What is done after a failure: that would be the second.
    "compose/gate.py: await file.close()",
    # No task is in flight when a crawl ends by itself; tests/frontier/test_lifecycle.py drains.
    "frontier/frontier.py: await self._progress.nothing_in_flight.wait()",
    # `on_end` has been called by the step in which `join` wakes: what it puts is waited for at `nothing_left`.
    "frontier/frontier.py: await all_told.wait() (2)",
    "frontier/frontier.py: await self._parts.in_flight.all_told.wait() (2)",
}
# A task inside a permit needs another robots.txt: tests/gate/test_asked_inside_a_permit.py.
INSIDE_A_PERMIT = {
    "gate/origin_manager.py: await flight.join(waiter)",
    "gate/services.py: await self.origins.learn(origin, unless=held)",
}
# Rules that were replaced while tasks waited, and then forgotten: tests/frontier/test_task_rules.py.
DECIDED_ANEW = {
    "frontier/task_rules.py: async with self._searching",
    "frontier/task_rules.py: await self._decide_if_undecided(queue, task, known)",
    "frontier/turn_seeker.py: await self._rules.undecided(queue)",
}
# tests/frontier/durable and the kill tests have the awaits of a frontier's file.
FOR_A_FILE = {
    "frontier/puts.py: await seen",
    "frontier/puts.py: await offer",
    "frontier/frontier.py: await offered",
    "frontier/frontier.py: await started",
}
# Turns and robots.txt of a shared crawl: tests/gate/test_turn_lost.py, tests/gate/test_shared_gate.py, tests/many.
SHARED_CRAWL = {
    "gate/turns.py: await self._own(self.scopes_of(target))",
    "gate/rules_source.py: await self._looked_up(origin, before)",
    "gate/rules_source.py: await self._fetch_and_save(origin, before, kept)",
    "gate/robots_fetcher.py: await meanwhile()",
    "gate/robots_fetcher.py: await self._found(meanwhile, turn)",
    "gate/robots_fetcher.py: await self._turn_of(origin, exchange.ask.target, lambda: pace)",
    "compose/gate.py: await join(gate, shared, crawl, tell=tell, lease_s=lease)",
    "compose/gate.py: await opened(store, clock, crawl, lease)",
}
# tests/gate/test_sitemaps.py and tests/frontier/test_put_sitemaps.py.
SITEMAPS = {
    "frontier/frontier.py: await put_entries(sitemaps, put, priority=priority)",
    "frontier/frontier.py: await self.put_many(urls, **options)",
}
# tests/gate/test_tdm_file.py.
USAGE = {
    "gate/gate.py: await self.services.learn(target)",
    "gate/gate.py: await asyncio.to_thread(robots.signals_for, self.agent)",
    "gate/gate.py: await fetch_tdm_file(self.services, target.origin)",
}
FILES = (
    "gate/gate.py", "gate/permit.py", "gate/services.py", "gate/origin_manager.py", "gate/rules_source.py",
    "gate/rules_reader.py", "gate/single_flight.py",
    "gate/robots_fetcher.py", "gate/turns.py", "gate/address_book.py", "gate/recrawl.py", "gate/charges.py", "compose/gate.py",
    "pacers/local.py", "stores/memory.py", "stores/sqlite.py", "stores/batch_worker.py", "frontier/frontier.py",
    "frontier/puts.py", "frontier/dispatcher.py", "frontier/turn_seeker.py", "frontier/task_rules.py",
    "frontier/capacity_limiter.py", "frontier/permit.py",
)  # fmt: skip


def awaits(file: str) -> list[tuple[str, set[int]]]:
    """Each await and `async with` in a file of polite, and its lines. The second of the same words is called so."""
    found = []
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Await):
            found.append(
                (f"{file}: {ast.unparse(node)}", set(range(node.lineno, (node.end_lineno or 0) + 1)))
            )
        elif isinstance(node, ast.AsyncWith):
            text = ", ".join(ast.unparse(item) for item in node.items)
            found.append((f"{file}: async with {text}", set(range(node.lineno, node.body[0].lineno))))
    found.sort(key=lambda each: min(each[1]))
    times: Counter[str] = Counter()
    named = []
    for text, lines in found:
        times[text] += 1
        named.append((text if times[text] == 1 else f"{text} ({times[text]})", lines))
    return named


@pytest.mark.slow("all crawls of this file once")
@pytest.mark.pure("reads the lines of suspended coroutines, which compiled ones do not have")
def test_every_await_there_is_was_among_those_that_failed(template: File) -> None:
    seen: set[Place] = set()
    suspensions = 0
    for path, scene, store in [
        *((path, "gate", STORES[store]) for path in PATHS for store in ("memory", "file")),
        *((TWO, scene, STORES[store]) for scene in (*SCENES, *OTHER_CALLS) for store in ("memory", "file")),
        *((CLOSED, scene, STORES["none"]) for scene in OTHER_CALLS),
        *((TWO, scene, filled(template)) for scene in ("gate", "frontier")),
        *((path, scene, STORES[store]) for path in (CHANGED, PAUSED) for scene in LATER for store in STORES),
        *((CHANGED, scene, STORES[store]) for scene in SHARED for store in ("memory", "file")),
        *(
            (path, scene, STORES["none"])
            for path in (CLOSED, HOSTILE, MOVING, ONE_ADDRESS)
            for scene in SCENES
        ),
        *((path, scene, STORES["none"]) for path in (CHANGED, HOSTILE) for scene in REPLACED),
        *((ONE_ADDRESS, scene, STORES["none"]) for scene in (*LATER, *NESTED, *CHARGED)),
    ]:
        saboteur = Saboteur()
        crawled(path, scene, store, saboteur)
        seen |= saboteur.places
        suspensions += saboteur.seen

    missed = {
        text
        for file in FILES
        for text, lines in awaits(file)
        if not lines & {line for name, line in seen if name == file}
    }
    assert (
        missed
        == NEVER_SUSPEND | INSIDE_A_PERMIT | DECIDED_ANEW | FOR_A_FILE | SHARED_CRAWL | SITEMAPS | USAGE
    )
    assert suspensions > 1_500
    assert len(seen) > 35
