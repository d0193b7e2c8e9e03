"""The queue of a polite crawler: crawlee's own, with a frontier that gives out its requests in their turns."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any, NamedTuple

from crawlee import Request, RequestState, service_locator
from crawlee.errors import UserDefinedErrorHandlerError
from crawlee.request_loaders import RequestManager, ThrottlingRequestManager
from crawlee.storage_clients.models import ProcessedRequest
from crawlee.storages import RequestQueue

from polite.errors import InvalidOption, InvalidURL, TurnLost
from polite.frontier.frontier import Frontier
from polite.frontier.in_flight import TaskPermit
from polite.frontier.progress import End, TaskOutcome
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.hop import require_gate
from polite.log import LINES, fields, without_query
from polite.options import integer
from polite.origin import Target
from polite.robots.decision import Disallowed
from polite.robots.reason import Reason
from polite.schedulers import Priority
from polite.task import Task

# How often it is looked whether the run has ended.
_FETCH_LOOK_EVERY_S = 0.2
# A run that has not asked its queue for so long has ended, such as by `abort_on_error`. crawlee asks twice a second.
_SILENT_S = 5.0


class WaitingFetches:
    """Wakes fetches. Those that are woken end with TimeoutError.

    crawlee tells its request manager nothing when a run ends. But the task that runs it asks the manager all the time whether
    it is empty or finished. So it is known, and if it is cancelled (Ctrl-C, an error of a worker) or silent, the run has ended.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Timeout] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._run: asyncio.Task[Any] | None = None
        self._asked_at = 0.0
        self._stopped = False

    def __len__(self) -> int:
        return len(self._waiting)

    def asked(self) -> None:
        """The current task asked whether there is more to do: it runs the crawl."""
        task = asyncio.current_task()
        if task is not self._run:
            self._run, self._stopped = task, False
        self._asked_at = asyncio.get_running_loop().time()

    def stop(self) -> None:
        """End all fetches of this run."""
        self._stopped = True
        self.wake(len(self._waiting))

    def over(self, until: float) -> bool:
        """Return whether a fetch may wait no longer: it is late, or the run has ended."""
        run, now = self._run, asyncio.get_running_loop().time()
        if now >= until or self._stopped or run is None:
            return now >= until or self._stopped
        return run.done() or run.cancelling() > 0 or now - self._asked_at > _SILENT_S

    def wake(self, count: int) -> None:
        """End so many fetches."""
        now = asyncio.get_running_loop().time() if self._waiting else 0.0
        for _ in range(min(count, len(self._waiting))):
            fetch = self._waiting.pop()
            if not fetch.expired():
                fetch.reschedule(now)

    @asynccontextmanager
    async def waiting(self, until: float) -> AsyncIterator[None]:
        """Raise TimeoutError when the fetch is woken, and at `until`, a time of the loop."""
        if self.over(until):
            raise TimeoutError
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FETCH_LOOK_EVERY_S, self._look)
        async with asyncio.timeout_at(until) as fetch:
            self._waiting.add(fetch)
            try:
                yield
            finally:
                self._waiting.discard(fetch)

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        if self.over(inf):
            self.wake(len(self._waiting))
        else:
            self._timer = asyncio.get_running_loop().call_later(_FETCH_LOOK_EVERY_S, self._look)


Skipped = Callable[[str, Any], Awaitable[None]]

# crawlee's limit on one fetch is 5 minutes unless its configuration has another; a fetch that found nothing is begun again.
_PATIENCE_S = 20.0
# How often a queue that gave out all its requests is looked into: others, or crawlee's batches in the background, may add some.
_LOOK_EVERY_S = 0.5
# After so many requests, other tasks run.
_AT_A_TIME = 100

_log = logging.getLogger("polite.crawlee")
# A filter of a logger is not asked about lines of those below it.
_log.addFilter(LINES)


class _Refused(NamedTuple):
    """A request that may not be sent: its URL, and why. `request` is None if crawlee itself marks it as handled."""

    url: str
    because: str
    request: Request | None


class PoliteRequestManager(RequestManager):
    """A request manager for `Crawler(request_manager=...)` that gives out each request when its turn has come.

    Example:
        manager = PoliteRequestManager(gate)
        crawler = ParselCrawler(request_manager=manager, http_client=PoliteHttpClient(manager))

    `polite_crawler` does this, and connects `on_skipped_request`. Use it on its own for a queue of yours, or other limits.

    Args:
        gate: A gate of `polite.open_gate`. The manager does not close it.
        queue: Keeps the requests: a `RequestQueue` or another request manager of crawlee. By default crawlee's default queue.
        window: How many requests of the queue wait for their turns at one time. Beyond it they stay in the queue.
        max_robots_tries: How often in a row a robots.txt may be out of reach before the requests of its origin are skipped.
        storage_client: That of the crawler, to open the default queue with.
        configuration: That of the crawler, for the same.

    Raises:
        InvalidOption: Something of these is of the wrong kind. A ThrottlingRequestManager would delay requests a second time.
    """

    def __init__(
        self,
        gate: Gate,
        queue: RequestManager | None = None,
        *,
        window: int = 10_000,
        max_robots_tries: int = 3,
        storage_client: Any = None,
        configuration: Any = None,
    ) -> None:
        require_gate(gate, user="PoliteRequestManager")
        if isinstance(queue, ThrottlingRequestManager):
            raise InvalidOption(
                "the gate keeps all delays: give the queue itself, not a ThrottlingRequestManager"
            )
        if queue is not None and not isinstance(queue, RequestManager):
            raise InvalidOption(f"queue must be a request manager of crawlee, got {queue!r}")
        integer("PoliteRequestManager: window", window, least=1)
        integer("PoliteRequestManager: max_robots_tries", max_robots_tries, least=1)
        self.gate = gate
        self._window = window
        self._max_robots_tries = max_robots_tries
        self._queue = queue
        self._storage_client = storage_client
        self._configuration = configuration
        self._on_skipped: Skipped | None = None
        self._frontier: Frontier | None = None
        # Requests that were taken from the queue and are not handled yet, by unique key, and the permits of those given out.
        self._taken: dict[str, Request] = {}
        self._permits: dict[str, TaskPermit] = {}
        self._refused: deque[_Refused] = deque()
        self._skipping = 0
        # Requests that go before all others: the latest first, as in crawlee's queue.
        self._forefront: dict[str, int] = {}
        self._filling: asyncio.Task[None] | None = None
        self._filled = asyncio.Event()
        self._stale = True
        self._looked_at = 0.0
        self._failure: Exception | None = None
        self._fetches = WaitingFetches()

    def __repr__(self) -> str:
        taken, given_out = len(self._taken), len(self._permits)
        return f"<PoliteRequestManager: {taken} taken from the queue, {given_out} given out>"

    # What a crawler and a client need of it.

    def on_skipped_request(self, callback: Skipped) -> Skipped:
        """Call `await callback(url, "robots_txt")` for each request that is skipped, as `crawler.on_skipped_request` does."""
        self._on_skipped = callback
        return callback

    def take_permit(self, request: Request) -> TaskPermit | None:
        """Return the permit that the request was given out with, if its turn still holds. The caller reports and leaves it.

        A hook of the crawler may have used it, or taken longer than `max_hold`. No part of the public API.
        """
        permit = self._permits.pop(request.unique_key, None)
        if permit is None or permit.valid:
            return permit
        permit.leave()
        return None

    def claim_permit(self, url: str) -> Permit | None:
        """Return the permit of a page that is not sent yet, if it is for this URL. Others of its origin are left.

        A hook or a handler that sends a request of its own would wait for the turn that its page holds. The page takes another.
        No part of the public API.
        """
        target = Target.of(url)
        for key, permit in [each for each in self._permits.items() if each[1].target.origin == target.origin]:
            del self._permits[key]
            if permit.target == target:
                return permit
            permit.leave()
        return None

    def skip(self, url: str, because: str) -> None:
        """Tell `on_skipped_request` of a URL that a request led to. crawlee marks the request as handled."""
        self._refused.append(_Refused(url, because, None))
        self._fetches.wake(1)

    def stop(self) -> None:
        """Give out nothing more in this run."""
        self._fetches.stop()

    async def release(self) -> None:
        """End a run: leave all permits, and give what was not handled back to the queue. The manager may be used again."""
        frontier, self._frontier = self._frontier, None
        filling, self._filling = self._filling, None
        if filling is not None:
            filling.cancel()
            with suppress(asyncio.CancelledError):
                await filling
        for permit in self._permits.values():
            permit.leave()
        self._permits.clear()
        if frontier is not None:
            frontier.stop()
        self._refused.clear()
        self._forefront.clear()
        self._failure = None
        self._stale = True
        taken, self._taken = self._taken, {}
        # The last becomes the first, so the first goes last.
        for request in reversed(taken.values()):
            await (await self._opened()).reclaim_request(request, forefront=True)

    # crawlee's interface.

    async def fetch_next_request(self) -> Request | None:
        """Wait for the turn of a request, and return it; None if there is none to wait for, or none came in 20 seconds."""
        # crawlee ends the crawl if a fetch takes longer than its own limit.
        limit = (self._configuration or service_locator.get_configuration()).internal_timeout
        patience_s = _PATIENCE_S if limit is None else min(_PATIENCE_S, limit.total_seconds() / 2)
        until = asyncio.get_running_loop().time() + patience_s
        while True:
            if self._failure is not None:
                raise self._failure
            if self._refused:
                await self._tell(self._refused.popleft())
                continue
            await self._fill()
            permit: TaskPermit | None = None
            if self._frontier is not None:
                with suppress(TimeoutError):
                    async with self._fetches.waiting(until):
                        permit = await self._frontier.next()
            if permit is not None:
                request: Request = permit.task.payload
                with suppress(Disallowed, TurnLost):
                    # It is refused, or waits again; `on_end` says which.
                    await permit.enter()
                    self._permits[request.unique_key] = permit
                    return request
            elif self._filling is not None and not self._fetches.over(until):
                await self._filled.wait()
            elif not self._refused:
                return None

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest | None:
        """See crawlee's RequestManager."""
        if (permit := self.take_permit(request)) is not None:
            permit.leave()  # nothing else takes it now
        processed = await (await self._opened()).mark_request_as_handled(request)
        self._taken.pop(request.unique_key, None)
        return processed

    async def reclaim_request(self, request: Request, *, forefront: bool = False) -> ProcessedRequest | None:
        """See crawlee's RequestManager."""
        if (permit := self.take_permit(request)) is not None:
            permit.leave()  # nothing else takes it now
        processed = await (await self._opened()).reclaim_request(request, forefront=forefront)
        self._taken.pop(request.unique_key, None)
        self._added([request], forefront=forefront)
        return processed

    async def add_request(
        self, request: str | Request, *, forefront: bool = False
    ) -> ProcessedRequest | None:
        """See crawlee's RequestManager."""
        request = self._transform_request(request)
        processed = await (await self._opened()).add_request(request, forefront=forefront)
        self._added([request], forefront=forefront)
        return processed

    async def add_requests(
        self, requests: Sequence[str | Request], *, forefront: bool = False, **options: Any
    ) -> None:
        """See crawlee's RequestManager."""
        transformed = self._transform_requests(requests)
        await (await self._opened()).add_requests(transformed, forefront=forefront, **options)
        self._added(transformed, forefront=forefront)

    async def is_empty(self) -> bool:
        """Return True if a further fetch would find nothing to wait for."""
        self._fetches.asked()
        if self._refused or self._failure is not None:
            return False
        await self._fill()
        if self._filling is not None:
            return False
        return self._frontier is None or self._frontier.waiting <= len(self._fetches)

    async def is_finished(self) -> bool:
        """See crawlee's RequestLoader."""
        self._fetches.asked()
        if self._taken or self._refused or self._skipping or self._failure is not None:
            return False
        return await (await self._opened()).is_finished()

    async def get_handled_count(self) -> int:
        """See crawlee's RequestLoader."""
        return await (await self._opened()).get_handled_count()

    async def get_total_count(self) -> int:
        """See crawlee's RequestLoader."""
        return await (await self._opened()).get_total_count()

    async def purge(self) -> None:
        """Remove all requests. A named queue keeps them, as crawlee has it: it is meant to last."""
        queue = await self._opened()
        if isinstance(queue, RequestQueue) and queue.name is not None:
            return
        await self.release()
        await queue.purge()

    async def drop(self) -> None:
        """See crawlee's RequestManager."""
        await self.release()
        await (await self._opened()).drop()

    # From crawlee's queue into the frontier.

    async def _opened(self) -> RequestManager:
        if self._queue is None:
            client, configuration = self._storage_client, self._configuration
            self._queue = await RequestQueue.open(storage_client=client, configuration=configuration)
        return self._queue

    def _added(self, requests: Sequence[Request], *, forefront: bool) -> None:
        self._stale = True
        if forefront:
            for request in requests:
                if request.unique_key not in self._taken:
                    self._forefront[request.unique_key] = len(self._forefront) + 1

    async def _fill(self) -> None:
        """Begin to take requests from the queue, if there may be some and the window has space for them."""
        if self._filling is not None:
            return
        frontier = self._frontier
        if frontier is not None and frontier.waiting >= self._window and not self._forefront:
            return
        now = asyncio.get_running_loop().time()
        if not self._stale and now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        queue = await self._opened()
        if await queue.is_empty():
            self._stale = False
        elif self._filling is None:
            self._filled.clear()
            self._filling = asyncio.create_task(self._take_from(queue))

    async def _take_from(self, queue: RequestManager) -> None:
        self._stale = False
        frontier = self._frontier = self._frontier or Frontier(
            self.gate,
            scheduler=Priority(),
            max_waiting=max(1_000_000, 2 * self._window),
            max_robots_tries=self._max_robots_tries,
            on_end=self._ended,
        )
        try:
            taken = 0
            while frontier.waiting < self._window or self._forefront:
                request = await queue.fetch_next_request()
                if request is None:
                    self._forefront.clear()
                    break
                self._taken[request.unique_key] = request
                priority = self._forefront.pop(request.unique_key, 0)
                try:
                    # crawlee's queue finds duplicates by their unique keys.
                    frontier.put_nowait(request.url, priority=priority, payload=request, unique=False)
                except InvalidURL as error:
                    self._refused.append(_Refused(request.url, str(error), request))
                taken += 1
                if taken % _AT_A_TIME == 0:
                    self._filled.set()
                    await asyncio.sleep(0)
            else:
                self._stale = True
        except Exception as error:  # noqa: BLE001 - the next fetch raises it
            self._failure = error
        finally:
            if self._filling is asyncio.current_task():
                self._filling = None
            self._filled.set()

    # From the frontier to crawlee.

    def _ended(self, task: Task, outcome: TaskOutcome) -> None:
        """The frontier's `on_end`."""
        request = task.payload
        if outcome.end is not End.DONE and isinstance(request, Request):
            # crawlee retries by itself, so the frontier drops for one of two reasons: that of robots.txt, or of the pacing policy.
            because = outcome.because
            if because in Reason.__members__:
                because = f"its robots.txt is unreachable ({because})"
            self._refused.append(_Refused(request.url, because, request))
            self._fetches.wake(1)

    async def _tell(self, refused: _Refused) -> None:
        """Mark the request as handled, and call `on_skipped_request`. What that raises ends the crawl."""
        self._skipping += 1
        try:
            extra = fields("request_skipped", url=refused.url)
            _log.warning("Skipping request %s: %s", without_query(refused.url), refused.because, extra=extra)
            if refused.request is not None:
                refused.request.state = RequestState.SKIPPED
                await self.mark_request_as_handled(refused.request)
            if self._on_skipped is not None:
                await self._on_skipped(refused.url, "robots_txt")
        except Exception as error:
            # crawlee fetches again after an error, so it must find the same one.
            what = "Exception thrown in user-defined skipped request callback"
            self._failure = UserDefinedErrorHandlerError(what)
            raise self._failure from error
        finally:
            self._skipping -= 1
