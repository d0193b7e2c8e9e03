"""ScriptedTransport: a transport that responds from a script, without a network."""

import asyncio
from collections.abc import Mapping, Sequence

from polite.robots.fetching.exchange import Ask, Failed, Reply

Answer = Reply | Failed | Exception
"""An entry of a script: a response, a failure, or an exception to raise."""


class ScriptedTransport:
    """Responds to each URL with the entries of a script, in order. The last entry is repeated.

    A URL without an entry is a 404. An exception in the script is raised. `hold()` delays all responses until
    `let_go()`.

    Args:
        script: for each URL one entry, or a sequence of entries.

    Attributes:
        asked: the URLs in the order of the requests.
        closed: how often `close` was called.
    """

    def __init__(self, script: Mapping[str, Answer | Sequence[Answer]] | None = None) -> None:
        self._script: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        self.closed: int = 0
        self._open = asyncio.Event()
        self._open.set()
        for url, answers in (script or {}).items():
            self.answer(url, *(answers if isinstance(answers, Sequence) else (answers,)))

    def answer(self, url: str, *answers: Answer) -> None:
        """Replace the entries of a URL by these answers."""
        self._script[url] = list(answers)

    def hold(self) -> None:
        """Delay all responses until `let_go`."""
        self._open.clear()

    def let_go(self) -> None:
        """Respond again."""
        self._open.set()

    async def get(self, ask: Ask) -> Reply | Failed:
        """Return the next entry of the script."""
        url = ask.target.url
        self.asked.append(url)
        await self._open.wait()
        answers = self._script.get(url, [Reply(404)])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Count the call in `closed`."""
        self.closed += 1
