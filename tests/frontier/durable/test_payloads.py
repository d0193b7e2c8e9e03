"""Numbers and payloads: what a file can hold is read as it was put, what it cannot hold is refused."""

from pathlib import Path
from typing import Any

import pytest

import polite
from polite.frontier.durable.backend import PAYLOAD_LIMIT
from tests.frontier.durable.support import opened
from tests.support import A

pytestmark = pytest.mark.virtual_time


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


@pytest.mark.parametrize("payload", [object(), {1, 2}, (1, 2), {1: "a"}, float("nan"), b"octets"])
async def test_a_payload_that_would_not_be_read_as_it_was_put_is_refused_by_its_type(
    path: Path, payload: Any
) -> None:
    async with opened(path) as frontier:
        with pytest.raises(polite.InvalidOption, match=f"payload of type {type(payload).__name__}") as told:
            await frontier.put(A, payload=payload)

        assert told.value.url == f"{A}/"
        assert frontier.waiting == 0
        await frontier.join()


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("x" * (PAYLOAD_LIMIT - 1), "octets of JSON"),
        (nested(101), "nested deeper than the limit of 100"),
        (nested(100_000), "recursion"),
    ],
)
async def test_a_payload_too_large_or_too_deep_is_refused(path: Path, payload: Any, why: str) -> None:
    async with opened(path) as frontier:
        with pytest.raises(polite.InvalidOption, match=why):
            await frontier.put(A, payload=payload)

        assert frontier.waiting == 0


@pytest.mark.parametrize(
    "payload", [nested(100), "x" * 100_000, [[]] * 200, "[" * 1_000, -0.0, 2**63, 10**400, 1.7e308]
)
async def test_a_payload_within_the_limits_is_read_as_it_was_put(path: Path, payload: Any) -> None:
    async with opened(path) as first:
        await first.put(A, payload=payload)
    async with opened(path) as second:
        assert (await anext(second)).task.payload == payload
