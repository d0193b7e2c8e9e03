"""A transport that answers from a script, for tests without a network."""

import asyncio
from collections.abc import Mapping, Sequence

from polite.robots.fetching.exchange import Ask, Failed, Reply

Answer = Reply | Failed | Exception


class ScriptedTransport:
    """Answers each URL with what the script holds for it, in order; the last answer stands. What is not in it is a 404.

    `asked`: the URLs in the order in which they were asked for. `hold()` makes all wait until `let_go()`. An exception in the
    script is raised.
    """

    def __init__(self, script: Mapping[str, Answer | Sequence[Answer]] | None = None) -> None:
        self._script: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        self.closed = 0
        self._open = asyncio.Event()
        self._open.set()
        for url, answers in (script or {}).items():
            self.answer(url, *(answers if isinstance(answers, Sequence) else (answers,)))

    def answer(self, url: str, *answers: Answer) -> None:
        """From now on the URL is answered so."""
        self._script[url] = list(answers)

    def hold(self) -> None:
        """Answer nobody until `let_go`."""
        self._open.clear()

    def let_go(self) -> None:
        """Answer again."""
        self._open.set()

    async def get(self, ask: Ask) -> Reply | Failed:
        """The next answer of the script."""
        url = ask.target.url
        self.asked.append(url)
        await self._open.wait()
        answers = self._script.get(url, [Reply(404)])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Counted in `closed`."""
        self.closed += 1
