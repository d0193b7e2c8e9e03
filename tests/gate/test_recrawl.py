"""A gate remembers what a page was reported with, and when it is due again."""

import pytest

import polite
from polite.stores.memory import MemoryValidators
from tests.gate.support import PAGE, opened, visit
from tests.support import fetch_all, now

RECRAWL = polite.RecrawlPolicy()
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


async def conditional_after(*reports, url=PAGE):
    async with opened(recrawl=RECRAWL) as (gate, _):
        for status, headers in reports:
            await gate.conditional(url)
            async with gate.permit(url) as permit:
                permit.report(status=status, headers=headers)
        return await gate.conditional(url)


async def test_headers_that_can_be_read_once_serve_retry_after_as_well() -> None:
    async with opened(recrawl=RECRAWL) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=503, headers=iter([("Retry-After", "7200"), ("ETag", '"1"')]))
            reported = now()
        assert permit.due - gate.services.clock.wall() == pytest.approx(7_200.0)
        assert await visit(gate) == pytest.approx(reported + 7_200.0)


ONE = {"ETag": '"1"'}
BOTH = ONE | {"Last-Modified": DATE}
KEPT = {"If-None-Match": '"1"'}


@pytest.mark.parametrize(
    ("reports", "conditions"),
    [
        ([(200, BOTH), (304, {})], KEPT | {"If-Modified-Since": DATE}),
        ([(200, BOTH), (304, {"ETag": '"2"'})], {"If-None-Match": '"2"', "If-Modified-Since": DATE}),
        ([(200, ONE | {"Cache-Control": "no-store"})], {}),
        ([(200, ONE), (304, {"Cache-Control": "no-store"})], {}),
        # A response that says nothing of the page changes nothing.
        *(([(200, ONE), (status, {"ETag": '"2"'})], KEPT) for status in (408, 425, 429, 500, 503, 99)),
        # A redirect or an error is not the page.
        *(([(200, ONE), (status, {"ETag": '"2"'})], {}) for status in (204, 301, 307, 404, 410)),
        ([(404, {"ETag": '"2"'})], {}),
    ],
)
async def test_the_next_request_has_the_conditions_that_the_last_responses_left(reports, conditions):
    assert await conditional_after(*reports) == conditions


async def test_a_304_to_a_request_without_conditions_adds_nothing() -> None:
    async with opened(recrawl=RECRAWL) as (gate, _):
        await visit(gate, status=304, ETag='"9"')
        assert await gate.conditional(PAGE) == {}
        await visit(gate, ETag='"1"')
        await gate.conditional(PAGE)
        await visit(gate, status=304)
        await visit(gate, status=304, ETag='"9"')
        assert await gate.conditional(PAGE) == {"If-None-Match": '"1"'}


async def test_a_response_that_was_not_read_to_its_end_is_not_remembered() -> None:
    async with opened(recrawl=RECRAWL) as (gate, _):
        await visit(gate, ETag='"1"')
        with pytest.raises(ConnectionError):
            async with gate.permit(PAGE) as permit:
                permit.report(status=200, headers={"ETag": '"2"'})
                raise ConnectionError
        permit = await gate.acquire(PAGE)
        permit.unread()
        permit.report(status=200, headers={"ETag": '"3"', "Cache-Control": "max-age=7200"})
        permit.unread()
        permit.unread()
        permit.leave()

        assert await gate.conditional(PAGE) == KEPT
        assert permit.due == pytest.approx(gate.services.clock.wall() + 7_200.0)


async def test_a_store_that_fails_to_remember_ends_no_request(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryValidators):
        def remember(self, target, validators):
            raise ZeroDivisionError

    async with opened(recrawl=RECRAWL, validators=Broken()) as (gate, _):
        before = await visit(gate, ETag='"1"')
        assert await visit(gate) == pytest.approx(before + 1.0)
    assert "the store of validators failed" in caplog.text


async def test_a_page_is_due_when_it_says_and_a_frontier_waits_for_that() -> None:
    async with opened(recrawl=RECRAWL) as (gate, _):
        frontier = polite.Frontier(gate)
        async with gate.permit(PAGE) as permit:
            permit.report(status=200, headers={"Cache-Control": "max-age=7200"})
        assert permit.due == pytest.approx(gate.services.clock.wall() + 7_200.0)
        await frontier.put(PAGE, again=True, not_before=permit.due)
        frontier.close()
        fetched: list[tuple[float, str]] = []
        before = now()

        await fetch_all(frontier, fetched)

        assert fetched == [(pytest.approx(before + 7_200.0), PAGE)]


async def test_nothing_is_remembered_of_a_url_that_is_too_long() -> None:
    longest = PAGE + "/" + "x" * (2_047 - len(PAGE))
    assert await conditional_after((200, ONE), url=longest)
    assert not await conditional_after((200, ONE), url=longest + "x")


async def test_conditional_requests_never_made_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.gate.recrawl._MOST_REQUESTED", 2)
    async with opened(recrawl=RECRAWL, pacing=polite.PacingPolicy(min_delay=0)) as (gate, _):
        for number in range(3):
            await visit(gate, f"{PAGE}/{number}", ETag='"1"')
        for number in range(3):
            await gate.conditional(f"{PAGE}/{number}")
        for number in range(3):
            await visit(gate, f"{PAGE}/{number}", status=304, ETag='"2"')
        known = [(await gate.conditional(f"{PAGE}/{number}"))["If-None-Match"] for number in range(3)]

    assert known == ['"1"', '"2"', '"2"']
