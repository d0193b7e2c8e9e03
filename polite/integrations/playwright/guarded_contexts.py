"""GuardedContexts: the guards of contexts that a framework opens and closes."""

import asyncio

from playwright.async_api import BrowserContext

from polite.gate.gate import Gate
from polite.integrations.playwright.context_guard import Guard, Subresources
from polite.integrations.playwright.guarding import guard


class GuardedContexts:
    """Guards each context when its first page is opened, and forgets it when it is closed: a crawl may have one for each page.

    Args:
        gate, subresources: As for `guard`.
    """

    def __init__(self, gate: Gate, subresources: Subresources = "check") -> None:
        self._gate = gate
        self._subresources: Subresources = subresources
        self._guards: dict[BrowserContext, Guard] = {}
        self._guarding = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._guards)

    async def guard_of(self, context: BrowserContext) -> Guard:
        """Return the guard of a context. Raises what `guard` raises."""
        async with self._guarding:
            guarded = self._guards.get(context)
            if guarded is None:
                guarded = self._guards[context] = await guard(context, self._gate, self._subresources)
                context.on("close", self._forget)
            return guarded

    def _forget(self, context: BrowserContext) -> None:
        self._guards.pop(context, None)
