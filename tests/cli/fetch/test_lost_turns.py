"""A turn that was lost, as in a shared crawl: nothing is sent, and no worker ends."""

import pytest

from polite.errors import StoreFailed, TurnLost
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.gate.services import Services
from polite.pacing.pacer import LocalPacer


@pytest.mark.pure("replaces methods of Services and LocalPacer")
def test_a_turn_that_is_lost_before_its_permit_is_entered_ends_no_worker(site, monkeypatch):
    lost = []
    in_force = Services.in_force

    def lose_first(services, turn, grounds):
        if not lost:
            lost.append(turn)
        return turn not in lost and in_force(services, turn, grounds)

    monkeypatch.setattr(Services, "in_force", lose_first)
    monkeypatch.setattr(LocalPacer, "holds", lambda _, turn: turn not in lost)

    assert site.run("--concurrency", "1", "/a", "/b") == 0

    assert sorted(site.paths) == ["/a", "/b"]
    assert {record["tries"] for record in site.records.values()} == {1}
    assert lost


def test_a_turn_that_is_lost_while_it_connects_sends_nothing_and_is_tried_again(site, monkeypatch):
    asked = []
    require = Permit.require

    def lose_first(permit):
        asked.append(permit.url)
        if len(asked) == 1:
            raise TurnLost("lost", url=permit.url)
        require(permit)

    monkeypatch.setattr(Permit, "require", lose_first)
    assert site.run("--concurrency", "1", "/a", "/b") == 0

    assert sorted(site.paths) == ["/a", "/b"]
    assert len(asked) == 3


def test_a_store_that_does_not_respond_after_a_page_ends_no_run(site, monkeypatch):
    async def fail(*_):
        raise StoreFailed("away")

    monkeypatch.setattr(Gate, "explain", fail)

    assert site.run("/a", "/b") == 0
    assert sorted(site.paths) == ["/a", "/b"]
