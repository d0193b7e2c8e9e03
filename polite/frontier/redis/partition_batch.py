"""PartitionBatches: one batch of a frontier, split by partition, and the replies put together again."""

import asyncio
from collections.abc import Callable
from typing import Any

from polite.frontier.durable.backend import BatchResult
from polite.stores.redis.changes import Changes
from polite.stores.redis.session import Session
from polite.stores.redis.step_reply import StepReply, TaskRow

Compose = Callable[[list[int | None], list[bool], list[tuple[str, list[TaskRow]]]], BatchResult]


class PartitionBatches:
    """The changes for each partition, and in which order their answers belong."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changes: dict[int, Changes] = {}
        self._urgent: set[int] = set()
        self._order: dict[str, list[tuple[int, str] | None]] = {"puts": [], "met": [], "loads": []}

    def at(self, home: str, *, lazy: bool = False) -> Changes:
        """Return the changes for the home's partition. Unless they are lazy, they go soon."""
        index = self._session.partition(home).index
        if not lazy:
            self._urgent.add(index)
        return self._changes.setdefault(index, Changes())

    def order(self, kind: str, home: str | None) -> None:
        """Note that the next answer of this kind comes from the home's partition; None: there is none."""
        place = None if home is None else (self._session.partition(home).index, home)
        self._order[kind].append(place)

    def ask_all(self) -> None:
        """Let each partition reply soon. One that is away replies by itself when it is back."""
        for partition in self._session.partitions:
            if partition.away_since is None:
                self._changes.setdefault(partition.index, Changes())
                self._urgent.add(partition.index)

    def send(self, written: Callable[[], None], compose: Compose) -> "asyncio.Future[BatchResult]":
        """Send all; the result is there when all partitions have replied. `written` is called before that."""
        result: asyncio.Future[BatchResult] = asyncio.get_running_loop().create_future()
        replies: dict[int, StepReply] = {}
        left = set(self._changes)

        def done(index: int, reply: "asyncio.Future[StepReply]") -> None:
            left.discard(index)
            error = reply.exception()
            if error is None:
                replies[index] = reply.result()
            elif not result.done():
                result.set_exception(error)
            if not left and not result.done():
                finish()

        def finish() -> None:
            written()
            result.set_result(self._composed(replies, compose))

        for index, changes in self._changes.items():
            sent = self._session.partitions[index].submit(changes, lazy=index not in self._urgent)
            sent.add_done_callback(lambda reply, index=index: done(index, reply))  # type: ignore[misc]
        if not left:
            finish()
        return result

    def _composed(self, replies: dict[int, StepReply], compose: Compose) -> BatchResult:
        puts: list[int | None] = self._in_order("puts", replies)
        numbered = [
            None if number is None or place is None else number * len(self._session.partitions) + place[0]
            for number, place in zip(puts, self._order["puts"], strict=True)
        ]
        loads = [
            ("" if place is None else place[1], rows or [])
            for rows, place in zip(self._in_order("loads", replies), self._order["loads"], strict=True)
        ]
        return compose(numbered, self._in_order("met", replies), loads)

    def _in_order(self, kind: str, replies: dict[int, StepReply]) -> list[Any]:
        answers = {index: iter(getattr(reply, kind)) for index, reply in replies.items()}
        return [None if place is None else next(answers[place[0]], None) for place in self._order[kind]]
