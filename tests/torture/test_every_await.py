"""Each await of gate, origins, flight, fetch, pacer and store fails once, on every path of the demo and of broken hosts."""

import asyncio
import itertools
from pathlib import Path as File
from tempfile import TemporaryDirectory

import pytest

import polite.stores.sqlite
from tests.torture.crawl import SCENES, Crawl, open_files
from tests.torture.loop import PatientLoop, PatientWorker
from tests.torture.saboteur import Failure, Saboteur
from tests.torture.stores import STORES, Opening, filled
from tests.torture.web import PATHS, Path


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polite.stores.sqlite, "Worker", PatientWorker)


def crawled(path: Path, scene: str, store: Opening, saboteur: Saboteur) -> None:
    """One crawl on a loop of its own, after which no descriptor is open that was not before."""

    async def main(folder: File) -> None:
        await Crawl(path, lambda: store(folder), saboteur).play(SCENES[scene])

    before = open_files()
    with TemporaryDirectory() as folder, asyncio.Runner(loop_factory=PatientLoop) as runner:
        try:
            runner.run(main(File(folder)))
        except BaseException as error:
            error.add_note(f"{saboteur.failure} at {saboteur.at}: {saboteur.struck_at}, {saboteur.victim}")
            raise
    assert open_files() == before, "a descriptor is left open"


def tortured(path: Path, scene: str, store: Opening, failure: Failure) -> None:
    """Crawl until an await later than the last would have to fail."""
    for at in itertools.count():
        saboteur = Saboteur(at, failure)
        crawled(path, scene, store, saboteur)
        if saboteur.victim is None:
            assert at
            return


@pytest.mark.parametrize("failure", Failure, ids=lambda f: f.name)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_nothing_is_stuck_lost_or_wrongly_allowed_when_an_await_fails(
    path: Path, store: str, failure: Failure
) -> None:
    tortured(path, "gate", STORES[store], failure)


@pytest.mark.parametrize("failure", Failure, ids=lambda f: f.name)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("scene", set(SCENES) - {"gate"})
def test_nor_when_gates_are_closed_and_askers_leave(scene: str, store: str, failure: Failure) -> None:
    for path in PATHS[-1:]:
        tortured(path, scene, STORES[store], failure)
