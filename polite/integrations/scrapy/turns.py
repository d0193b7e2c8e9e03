"""How a request of Scrapy gets its turn: in PoliteQueue, in PoliteMiddleware, and in CrawlTurns, which both share."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.utils.asyncio import is_asyncio_available
from twisted.web.client import URI

from polite.errors import GateClosed, InvalidOption, InvalidURL, PoliteError, TurnLost, redact_url
from polite.events import BackedOff, CircuitOpened, Event, RobotsFetched
from polite.frontier.frontier import Frontier
from polite.frontier.in_flight import TaskPermit
from polite.frontier.progress import End, TaskOutcome
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.hop import Hop, set_agent
from polite.integrations.scrapy.options import Options, shared_gate, warn_of_waiting_places
from polite.origin import Target
from polite.robots.decision import Disallowed
from polite.robots.reason import Reason
from polite.task import Task

log: logging.Logger = logging.getLogger(__name__)

_SCRAPYS = "scrapy.core.downloader.handlers."


class EngineSlot:
    """A crawler's engine, by its private `_slot` and the private parts of its download handlers.

    Without it the engine would look for requests only at its heartbeat, every 5 seconds, a spider that closes would wait for
    requests that wait for their turn, and a lost connection would be a request without a turn. Tests notice if it changes.
    """

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler

    @property
    def _slot(self) -> Any:
        return getattr(self._crawler.engine, "_slot", None)

    def wake(self) -> None:
        """Have the engine ask its scheduler for requests, in the next step of the event loop."""
        if self._slot is not None:
            self._slot.nextcall.schedule()

    @property
    def closing(self) -> bool:
        """Whether the spider is closing or closed."""
        return self._slot is None or self._slot.closing is not None

    def send_nothing_twice(self) -> None:
        """Turn off that a request is sent again at once if its connection was used before and is closed.

        It is an error instead, which Scrapy's RetryMiddleware retries in its turn.
        """
        handlers = self._crawler.engine.downloader.handlers
        for scheme in ("http", "https"):
            handler = handlers._get_handler(scheme)  # noqa: SLF001
            if handler is not None and not _sends_once(handler):
                log.warning(
                    "DOWNLOAD_HANDLERS: %s is not Scrapy's own. What it requests by itself takes no turn and is not checked, "
                    "such as redirects and images in a browser",
                    type(handler).__name__,
                )


def _sends_once(handler: Any) -> bool:
    """Turn a handler's silent retry off. Return whether nothing else is sent in silence, as far as is known."""
    pool: Any = getattr(handler, "_pool", None)
    session: Any = getattr(handler, "_session", None)
    if hasattr(pool, "retryAutomatically"):  # Twisted
        pool.retryAutomatically = False
        return True
    if hasattr(session, "_retry_connection"):  # aiohttp
        session._retry_connection = False  # noqa: SLF001
        return True
    return type(handler).__module__.startswith(_SCRAPYS)


# How often it is looked whether the spider is closing (seconds).
_LOOK_S = 0.5


class WaitingRequests:
    """Gives requests a permit each. Media pipelines may have thousands that wait, so one timer looks for all of them.

    Scrapy has no signal for a spider that begins to close, and its end would wait for these requests.
    """

    def __init__(self, engine: EngineSlot) -> None:
        self._engine = engine
        self._waiting: set[asyncio.Task[Permit]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, gate: Gate, url: str) -> Permit:
        """Return a permit in its turn. Raises what `gate.acquire` raises, and GateClosed if the spider closes."""
        waiting = asyncio.ensure_future(gate.acquire(url))
        self._waiting.add(waiting)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)
        try:
            await asyncio.wait({waiting})
        except BaseException:
            waiting.cancel()
            waiting.add_done_callback(_give_back)
            raise
        finally:
            self._waiting.discard(waiting)
        if waiting.cancelled():
            raise GateClosed(f"{redact_url(url)}: the spider is closing")
        return waiting.result()

    def _look(self) -> None:
        self._timer = None
        if self._engine.closing:
            for waiting in self._waiting:
                waiting.cancel()
        elif self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)


def _give_back(waiting: asyncio.Task[Permit]) -> None:
    """Give back a turn that came in the step in which its request was cancelled."""
    if not waiting.cancelled() and waiting.exception() is None:
        waiting.result().unsent()


# So many origins are remembered whose robots.txt was given up, the latest. The next request of another waits for it again.
_MAX_ORIGINS = 10_000


class RobotsGivenUp(PoliteError):
    """The robots.txt of a request's origin could not be fetched, too often in a row."""


class CountedEvents:
    """A listener that counts what a gate tells, in the stats of a crawler."""

    events: frozenset[type[Event]] = frozenset({RobotsFetched, BackedOff, CircuitOpened})

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count

    def __call__(self, event: Event, /) -> None:
        match event:
            case RobotsFetched():
                self._count("robots_fetched")
                self._count(f"robots_fetched/{event.outcome}")
            case BackedOff():
                self._count("backed_off")
                self._count(f"backed_off/{event.status}")
            case _:
                self._count("circuits_opened")


# So many requests may have their turn and wait for the engine: their origins wait with them.
_AHEAD = 16
# They are sent to no web server that could have a robots.txt.
_UNPACED = ("data:", "file:", "s3:")


@dataclass(eq=False, slots=True)
class Head:
    """The request of a bucket that goes next.

    Attributes:
        ready: Where it goes when its turn has come, or it is refused.
        bucket: The name of its queue.
        request: The request.
        permit: The turn, once it came.
        error: Why there is none.
        taken: It was given to the engine or put back: nothing is to be done for it any more.
    """

    ready: "deque[Head]"
    bucket: str
    request: Request
    permit: TaskPermit | None = None
    error: PoliteError | None = None
    taken: bool = False


class CrawlTurns:
    """What the priority queues and the middleware of one crawler share.

    A head waits in the frontier. `_pump` takes permits from there, and offers their heads to the engine. `take` is the moment when
    the engine takes the request, `enter` the one before it is sent, and `end` the last.

    Attributes:
        gate: The gate; None until the spider is opened.
        queues: Those whose heads are put.

    It counts in the stats of the crawler:

    polite/granted            requests that got their turn
    polite/unsent             turns given back, since another middleware answered or dropped the request
    polite/denied             requests that got IgnoreRequest; also by the name of polite's error, polite/denied/Disallowed
    polite/left_in_queue      requests that waited in memory when the crawl ended: they were not sent
    polite/robots_fetched     fetches of robots.txt; also by outcome, polite/robots_fetched/found
    polite/backed_off         refusals by servers; also by status, polite/backed_off/429
    polite/circuits_opened    origins that failed too often

    The last three are those of the gate, also for other crawlers that share it.

    Raises:
        InvalidOption: Scrapy runs on another reactor than that of asyncio.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            raise InvalidOption(
                "polite needs asyncio: remove TWISTED_REACTOR, or set it to twisted.internet.asyncioreactor.AsyncioSelectorReactor"
            )
        self.gate: Gate | None = None
        self._crawler = crawler
        self._engine = EngineSlot(crawler)
        self._options = Options.of(crawler)
        self._cache: Any = None
        self._leave_gate: Callable[[], object] | None = None
        self._frontier: Frontier | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self.queues: list[PoliteQueue] = []
        self._early: list[Head] = []  # before the gate is open
        self._waiting = WaitingRequests(self._engine)
        self._given_up: dict[str, None] = {}  # buckets whose robots.txt is out of reach for long
        self._checks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(_AHEAD - 1)
        self._taken: dict[Request, Head] = {}  # granted or refused, taken by the engine, and not entered
        self._open: dict[Request, Hop] = {}
        connect = crawler.signals.connect
        connect(self._spider_opened, signal=signals.spider_opened)
        connect(self._spider_closed, signal=signals.spider_closed)
        connect(self._head_came, signal=signals.headers_received)
        connect(self._response_came, signal=signals.response_downloaded)

    # The beginning and the end.

    async def _spider_opened(self, spider: Spider) -> None:
        try:
            await self._start()
        except Exception as error:
            # Scrapy would only log it, and the requests would wait for a gate that never opens.
            log.exception("polite cannot start, so nothing is fetched", extra={"spider": spider})
            raise CloseSpider("polite_failed") from error

    async def _start(self) -> None:
        options = self._options
        if not self.queues:
            warn_of_waiting_places(self._crawler.settings)
        self._engine.send_nothing_twice()
        self._cache = self._crawler.get_downloader_middleware(HttpCacheMiddleware)
        self.gate, self._leave_gate = await shared_gate(options, CountedEvents(self.count))
        if self.queues:
            tries = options.max_robots_tries
            self._frontier = Frontier(self.gate, max_tries=1, max_robots_tries=tries, on_end=self._on_end)
            self._pumping = asyncio.create_task(self._pump(self._frontier))
        early, self._early = self._early, []
        for head in early:
            self.put(head)

    async def _spider_closed(self, spider: Spider) -> None:
        for queue in self.queues:
            if len(queue):
                self.count("left_in_queue", len(queue))
            queue.withdraw()
        if self._frontier is not None:
            self._frontier.stop()
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.wait({self._pumping})
        for checking in self._checks:
            checking.cancel()
        if self._checks:
            await asyncio.wait(self._checks)
        for request in [*self._taken, *self._open]:
            self.end(request)
        if self._leave_gate is not None:
            self._leave_gate()

    def count(self, what: str, number: int = 1) -> None:
        """Count in the stats of the crawler."""
        self._crawler.stats.inc_value(f"polite/{what}", number)

    # Heads wait for their turn.

    def put(self, head: Head) -> None:
        """Have a head wait for its turn. It is offered to its queue then, or when it is refused."""
        if self.gate is None:
            self._early.append(head)
        elif head.taken:
            pass  # it was put back before the gate was open
        elif self._needs_no_turn(head.request):
            self._offer(head)
        elif head.bucket in self._given_up:
            checking = asyncio.ensure_future(self._check_again(self.gate, head))
            self._checks.add(checking)
            checking.add_done_callback(self._checks.discard)
        else:
            self._put_in_frontier(head)

    def _put_in_frontier(self, head: Head) -> None:
        if self._frontier is not None:
            try:
                self._frontier.put_nowait(_as_sent(head.request.url), unique=False, payload=head)
            except PoliteError as error:
                self._refuse(head, error)

    async def _check_again(self, gate: Gate, head: Head) -> None:
        """Decide about a further request of an origin whose robots.txt was given up, without waiting for a back-off.

        The frontier drops all of an origin's tasks then, but it has the head of the queue only. Each further head would wait for as
        many tries again, with back-offs that grow: a site that is down would keep the crawl open for days.
        """
        url = head.request.url
        error: PoliteError | None = None
        try:
            # Within a back-off, this says at once what is known. After it, robots.txt is fetched once more.
            decision = await gate.check(url)
            if decision.reason is Reason.UNREACHABLE:
                error = RobotsGivenUp(f"{redact_url(url)}: {decision}", url=url)
            else:
                self._given_up.pop(head.bucket, None)
        except PoliteError as failed:
            error = failed
        except Exception as failed:  # noqa: BLE001 - a head that nothing becomes of would keep the crawl open
            error = RobotsGivenUp(f"{redact_url(url)}: {failed!r}", url=url)
        if error is not None and not head.taken:
            self._refuse(head, error)
        elif not head.taken:
            self._put_in_frontier(head)

    def take(self, head: Head) -> Request:
        """The engine takes the request of a head, with its permit or its refusal."""
        request = head.request
        if request in self._open or request in self._taken:
            # One object was yielded twice.
            request = request.copy()
        head.taken = True
        if head.error is not None or head.permit is not None:
            self._taken[request] = head
        if head.permit is not None:
            self._places.release()
        return request

    def withdraw(self, head: Head) -> None:
        """Forget a head that is put back, and give its turn back."""
        head.taken = True
        if head.permit is not None:
            head.permit.unsent(requeue=False)
            self._places.release()

    def _needs_no_turn(self, request: Request) -> bool:
        """Whether nothing will be sent to a web server. If the cache has lost the page by then, the middleware waits."""
        if request.url.startswith(_UNPACED):
            return True
        cache = self._cache
        if cache is None or request.meta.get("dont_cache") or not cache.policy.should_cache_request(request):
            return False
        try:
            cached = cache.storage.retrieve_response(self._crawler.spider, request)
        except Exception:  # noqa: BLE001 - the cache's middleware tells of it
            return False
        if cached is None:
            return cache.ignore_missing
        return cache.policy.is_cached_response_fresh(cached, request)

    async def _pump(self, frontier: Frontier) -> None:
        try:
            async for permit in frontier:
                head: Head = permit.task.payload
                if head.taken:
                    # It was put back, or its turn was lost after the engine had taken it.
                    permit.unsent(requeue=False)
                    continue
                head.permit = permit
                self._offer(head)
                await self._places.acquire()
        except Exception:
            # Whatever it is: without this task nothing would be sent any more, and nothing would say so.
            log.exception("polite failed, so the spider closes")
            # A task of its own: closing the spider waits for the end of this one.
            closing = self._crawler.engine.close_spider_async(reason="polite_failed")
            self._closing = asyncio.create_task(closing)

    def _on_end(self, task: Task, outcome: TaskOutcome) -> None:
        head: Head = task.payload
        if head.taken or outcome.end is End.DONE:
            return
        if outcome.decision is not None:
            self._refuse(head, Disallowed(outcome.decision, url=task.url))
        elif outcome.because not in Reason.__members__:
            # The pacing policy permits no more requests to the origin: the gate says so again when the request is entered.
            self._offer(head)
        else:
            while len(self._given_up) >= _MAX_ORIGINS:
                del self._given_up[next(iter(self._given_up))]
            self._given_up[head.bucket] = None
            why = f"given up, since its robots.txt is unreachable ({outcome.because})"
            self._refuse(head, RobotsGivenUp(f"{redact_url(task.url)}: {why}", url=task.url))

    def _refuse(self, head: Head, error: PoliteError) -> None:
        head.error = error
        self._offer(head)

    def _offer(self, head: Head) -> None:
        head.ready.append(head)
        self._engine.wake()

    # Requests of the engine.

    async def enter(self, request: Request) -> None:
        """Wait until a request may be sent.

        Raises:
            PoliteError: It must not be sent.
        """
        if request.url.startswith(_UNPACED):
            return
        head = self._taken.get(request)
        if head is not None and head.error is not None:
            del self._taken[request]
            raise head.error
        agent = self._options.agent.header
        set_agent(request.headers, agent, default=agent)
        self._taken.pop(request, None)
        permit: Permit | None = None
        if head is not None and head.permit is not None:
            # If another process has the origin by now, the task of the frontier is ended when it is given out again.
            with suppress(TurnLost):
                permit = await head.permit.enter()
        if self.gate is None:
            raise GateClosed(f"{redact_url(request.url)}: polite is not open")
        if permit is None:
            permit = await self._waiting.acquire(self.gate, _as_sent(request.url))
        hop = self._open[request] = Hop(self.gate, permit, request.method)
        if permit.url != request.url.partition("#")[0]:
            # Scrapy's own: a replaced request would pass through all middlewares again. Dots, for example, are resolved.
            request._set_url(permit.url)  # noqa: SLF001
        try:
            # Scrapy connects after that: a signature must be valid for longer than this takes.
            hop.sign(request.headers)
        except BaseException as error:
            self._open.pop(request).fail(error)
            raise
        self.count("granted")

    def _head_came(self, request: Request) -> None:
        if (hop := self._open.get(request)) is not None:
            hop.permit.began()

    def _response_came(self, request: Request, response: Response) -> None:
        hop = self._open.pop(request, None)
        if hop is not None:
            headers = [(name, value) for name, values in response.headers.items() for value in values]
            try:
                hop.report(response.status, headers)
            finally:
                hop.end(len(response.body), whole=True)

    def end(self, request: Request, error: Exception | None = None) -> None:
        """End what a request has: its turn goes back if nothing was sent. May be called for each request, also twice."""
        head = self._taken.pop(request, None)
        if head is not None and head.permit is not None:
            self.count("unsent")
            head.permit.unsent(requeue=False)
        hop = self._open.pop(request, None)
        if hop is not None:
            hop.permit.leave(error)

    def end_inactive(self) -> None:
        """End what requests have that left the engine without a word: a middleware returned another request instead."""
        if self._taken:
            active = self._crawler.engine.downloader.active
            for request in [each for each in self._taken if each not in active]:
                self.end(request)


def _as_sent(url: str) -> str:
    """Return the URL as Twisted sends it: without a `;` or a `?` at its end. Raises InvalidURL."""
    origin, path = Target.of(url).origin, _sent_path(Target.of(url).url)
    if _sent_path(f"{origin}{path}") != path:
        # Some versions of Python add two slashes to a path that begins with two.
        raise InvalidURL(url, "Twisted cannot send its path as it is")
    return f"{origin}{path}"


def _sent_path(url: str) -> str:
    path: bytes = URI.fromBytes(url.encode()).originForm
    return path.decode()


class PoliteMiddleware:
    """A downloader middleware that checks each request, waits for its turn, and reports the response.

    Example:
        DOWNLOADER_MIDDLEWARES = {"polite.integrations.scrapy.PoliteMiddleware": 990}

    Redirects, retries and requests of media pipelines pass through it like all others. A request that is refused gets
    IgnoreRequest, whose cause is polite's error. It must be the innermost middleware.

    `Addon` sets it, and a priority queue where requests wait. Without the add-on, requests wait here, and hold a place of
    CONCURRENT_REQUESTS meanwhile: with more hosts than places the crawl is slow. A warning says so.

    Attributes:
        turns: What it shares with the priority queues.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.turns: CrawlTurns = CrawlTurns(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler, as Scrapy does."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait for the request's turn. Raises IgnoreRequest if it is refused, or anything of polite fails."""
        try:
            await self.turns.enter(request)
        except PoliteError as error:
            self.turns.count("denied")
            self.turns.count(f"denied/{type(error).__name__}")
            log.debug("Refused: %s", error)
            raise IgnoreRequest(f"polite: {error}") from error

    def process_response(self, request: Request, response: Response) -> Response:
        """End the permit of a request that did not need it: another middleware, such as a cache, had the response."""
        self.turns.end(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """End the permit of a request that failed with an exception, or that another middleware dropped."""
        self.turns.end(request, exception)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.turns.gate!r}>"


class PoliteQueue(DownloaderAwarePriorityQueue):
    """Scrapy's queues by priority, one set for each origin. The head of each waits in a frontier for its turn.

    Order: what is first by priority and by SCHEDULER_MEMORY_QUEUE becomes the head when the head before it is given to the engine.
    A request of a higher priority that comes later goes after the head. Between origins, the head that became one first goes first.

    With a JOBDIR, `close` puts the heads back onto the disk.
    """

    def __init__(self, crawler: Crawler, *args: Any, **options: Any) -> None:
        middleware = crawler.get_downloader_middleware(PoliteMiddleware)
        if middleware is None:
            raise InvalidOption(
                "PoliteQueue needs PoliteMiddleware: set ADDONS = {'polite.integrations.scrapy.Addon': 300}"
            )
        self._turns: CrawlTurns = middleware.turns
        self._heads: dict[str, Head] = {}
        self._ready: deque[Head] = deque()  # their turn has come, or they were refused
        super().__init__(crawler, *args, **options)
        self._size = super().__len__()
        self._turns.queues.append(self)
        for bucket in list(self.pqueues):
            self._advance(bucket)

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be written to the disk."""
        bucket = _bucket(request.url)
        queue = self.pqueues.get(bucket)
        if queue is None:
            queue = self.pqueues[bucket] = self.pqfactory(bucket)
        queue.push(request)
        self._size += 1
        if bucket not in self._heads:
            self._advance(bucket)

    def pop(self) -> Request | None:
        """Return a request whose turn has come, or that was refused; None if there is none now."""
        if not self._ready:
            self._turns.end_inactive()
            return None
        head = self._ready.popleft()
        request = self._turns.take(head)
        self._size -= 1
        del self._heads[head.bucket]
        if head.bucket in self.pqueues:
            self._advance(head.bucket)
        return request

    def peek(self) -> Request | None:
        """Return what `pop` would return."""
        return self._ready[0].request if self._ready else None

    def _advance(self, bucket: str) -> None:
        """Make the first request of a bucket its head."""
        queue = self.pqueues[bucket]
        request = queue.pop()
        if not queue:
            del self.pqueues[bucket]
            queue.close()
            if self.key:
                # What other files are there keeps the folder.
                with suppress(OSError):
                    Path(queue.key).rmdir()
        if request is not None:
            self._heads[bucket] = head = Head(self._ready, bucket, request)
            self._turns.put(head)

    def close(self) -> dict[str, list[int]]:
        """Put the heads back, close the queues, and return their priorities by bucket."""
        for bucket, head in self.withdraw():
            if bucket not in self.pqueues:
                self.pqueues[bucket] = self.pqfactory(bucket)
            self.pqueues[bucket].push(head.request)
        self._size = 0
        priorities: dict[str, list[int]] = super().close()
        return priorities

    def withdraw(self) -> list[tuple[str, Head]]:
        """Give no more requests out: end the heads and return them by bucket. No part of the public API."""
        heads, self._heads = self._heads, {}
        self._ready.clear()
        for head in heads.values():
            self._turns.withdraw(head)
        return list(heads.items())

    def __len__(self) -> int:
        return self._size

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._heads or bucket in self.pqueues


def _bucket(url: str) -> str:
    """Return what has a queue of its own: about an origin. If two spellings of one differ, it has two heads."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
