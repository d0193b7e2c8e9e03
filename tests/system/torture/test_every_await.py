"""Each await of gate, origins, flight, fetch, pacer and store fails once, on every path of the demo and of broken hosts."""

import asyncio
import itertools
from pathlib import Path as File
from tempfile import TemporaryDirectory

import pytest

from tests.system.torture.crawl import Crawl, open_files
from tests.system.torture.loop import PatientLoop
from tests.system.torture.saboteur import Failure, Place, Saboteur
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


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_nothing_is_stuck_lost_or_wrongly_allowed_when_an_await_fails(path: Path, failure: Failure) -> None:
    tortured(path, "gate", STORES["memory"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_nor_with_a_store_in_a_file(path: Path) -> None:
    tortured(path, "gate", STORES["file"], Failure.CANCEL)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("scene", SCENES)
def test_nor_without_a_store(scene: str, failure: Failure) -> None:
    tortured(BUSY, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("scene", SCENES)
def test_nor_when_gates_are_closed_and_askers_leave(scene: str, store: str, failure: Failure) -> None:
    tortured(TWO, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
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


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("scene", ["gate", "frontier"])
def test_nor_when_the_store_knew_already(template: File, scene: str, failure: Failure) -> None:
    tortured(TWO, scene, filled(template), failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("path", [CHANGED, PAUSED], ids=lambda p: p.name)
@pytest.mark.parametrize("scene", LATER)
def test_nor_when_what_is_known_is_asked_for_again(
    scene: str, path: Path, store: str, failure: Failure
) -> None:
    tortured(path, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("scene", SHARED)
def test_nor_when_another_crawler_was_told_since(scene: str, store: str, failure: Failure) -> None:
    tortured(CHANGED, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
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


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("scene", CHARGED)
def test_nor_when_requests_were_sent_without_permits(scene: str, failure: Failure) -> None:
    tortured(ONE_ADDRESS, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("scene", LATER)
def test_nor_when_addresses_are_asked_for_again(scene: str, failure: Failure) -> None:
    tortured(ONE_ADDRESS, scene, STORES["none"], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("store", ["none", "file"])
@pytest.mark.parametrize("scene", SCENES)
def test_nor_when_a_thread_decides_about_long_urls(scene: str, store: str, failure: Failure) -> None:
    tortured(HOSTILE, scene, STORES[store], failure)


@pytest.mark.slow("each await of a crawl fails once", fast=8)
@FAILURES
@pytest.mark.parametrize("store", ["none", "file"])
@pytest.mark.parametrize("path", [CHANGED, HOSTILE], ids=lambda p: p.name)
@pytest.mark.parametrize("scene", REPLACED)
def test_nor_when_rules_are_replaced_before_a_permit_is_entered(
    scene: str, path: Path, store: str, failure: Failure
) -> None:
    tortured(path, scene, STORES[store], failure)


@pytest.mark.slow("all crawls of this file once")
@pytest.mark.pure("reads the lines of suspended coroutines, which compiled ones do not have")
def test_what_fails_are_many_awaits_in_many_places(template: File) -> None:
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

    assert suspensions > 1_500
    assert len(seen) > 35
