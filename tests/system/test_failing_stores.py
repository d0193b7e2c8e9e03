"""A store that fails, or turns that cannot be closed: an error, and nothing disallowed is allowed."""

import asyncio

import pytest

import polite
from polite.testing import ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

ALLOWED = "https://site.test/page"


class FailingStore:
    """A store whose every call fails."""

    async def load(self, origin: polite.Origin) -> None:
        raise OSError("disk on fire")

    async def save(self, origin: polite.Origin, snapshot: object) -> None:
        raise OSError("disk on fire")

    async def close(self) -> None:
        pass


async def test_a_store_that_fails_allows_nothing() -> None:
    async with scripted_gate(ScriptedTransport(), store=FailingStore()) as gate:
        with pytest.raises(polite.StoreFailed, match="FailingStore.load.*on fire"):
            await gate.check(ALLOWED)


@pytest.mark.pure("replaces a method of Turns")
async def test_turns_that_cannot_be_closed_leave_no_fetch_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> None:
        raise OSError("not now")

    transport = ScriptedTransport()
    transport.hold()
    async with scripted_gate(transport) as gate:
        asking = asyncio.create_task(gate.check(ALLOWED))
        await asyncio.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(gate.services.turns, "close", failing)
            with pytest.raises(OSError, match="not now"):
                await gate.close()

        with pytest.raises(polite.GateClosed):
            await asking
        assert len(asyncio.all_tasks()) == 1


async def test_a_store_that_cancels_itself_is_an_error_and_cancels_no_caller() -> None:
    class CancelledStore(FailingStore):
        async def load(self, origin: polite.Origin) -> None:
            raise asyncio.CancelledError

    async with scripted_gate(ScriptedTransport(), store=CancelledStore()) as gate:
        with pytest.raises(polite.StoreFailed, match="CancelledError"):
            await gate.check(ALLOWED)
