"""CrawlTurns: the turns of one crawler's requests, from the heads of its queues to the end of each response."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available
from twisted.web.client import URI

from polite.errors import GateClosed, InvalidOption, InvalidURL, PoliteError, TurnLost, redact_url
from polite.events import BackedOff, CircuitOpened, Event, RobotsFetched
from polite.frontier.frontier import Frontier
from polite.frontier.permit import TaskPermit
from polite.frontier.task_outcome import End, TaskOutcome
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.entering import brings_page, failure, require_agent, sign
from polite.integrations.scrapy.head import Head
from polite.integrations.scrapy.options import Options, SharedGate, shared_gate
from polite.integrations.scrapy.waiting_requests import EngineSlot, WaitingRequests
from polite.origin import Target
from polite.robots.decision import Disallowed
from polite.robots.reason import Reason
from polite.task import Task

if TYPE_CHECKING:
    from polite.integrations.scrapy.priority_queue import PoliteQueue


class Ledger:
    """Counts in the stats of a crawler.

    polite/granted            requests that got their turn
    polite/unsent             turns given back, since another middleware answered or dropped the request
    polite/denied             requests that got IgnoreRequest; also by the name of polite's error, polite/denied/Disallowed
    polite/left_in_queue      requests that waited in memory when the crawl ended: they were not sent
    polite/robots_fetched     fetches of robots.txt; also by outcome, polite/robots_fetched/found
    polite/backed_off         refusals by servers; also by status, polite/backed_off/429
    polite/circuits_opened    origins that failed too often

    The last three are those of the gate, also for other crawlers that share it.
    """

    def __init__(self, stats: Any) -> None:  # noqa: ANN401 - Scrapy's StatsCollector
        self._stats = stats

    def granted(self) -> None:
        self._stats.inc_value("polite/granted")

    def unsent(self) -> None:
        self._stats.inc_value("polite/unsent")

    def denied(self, error: PoliteError) -> None:
        self._stats.inc_value("polite/denied")
        self._stats.inc_value(f"polite/denied/{type(error).__name__}")

    def left_in_queue(self, requests: int) -> None:
        if requests:
            self._stats.inc_value("polite/left_in_queue", requests)

    def event(self, event: Event) -> None:
        """Count an event of the gate."""
        match event:
            case RobotsFetched():
                self._stats.inc_value("polite/robots_fetched")
                self._stats.inc_value(f"polite/robots_fetched/{event.outcome}")
            case BackedOff():
                self._stats.inc_value("polite/backed_off")
                self._stats.inc_value(f"polite/backed_off/{event.status}")
            case CircuitOpened():
                self._stats.inc_value("polite/circuits_opened")


# So many are remembered, the latest. The next request of another waits for robots.txt again.
_MAX_ORIGINS = 10_000


class RobotsGivenUp(PoliteError):
    """The robots.txt of a request's origin could not be fetched, too often in a row."""


class GivenUpOrigins:
    """Decides about further requests of such origins without waiting for a back-off.

    The frontier drops all of an origin's tasks when its robots.txt is given up, but it has the head of the queue only. Each further
    head would wait for as many tries again, with back-offs that grow: a site that is down would keep the crawl open for days.

    Args:
        readmit: Called with a head whose robots.txt is there again.
        refuse: Called with a head, and why it is refused.
    """

    def __init__(self, readmit: Callable[[Head], None], refuse: Callable[[Head, PoliteError], None]) -> None:
        self._readmit = readmit
        self._refuse = refuse
        self._buckets: dict[str, None] = {}
        self._checks: set[asyncio.Task[None]] = set()

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._buckets

    def add(self, bucket: str) -> None:
        """The robots.txt of a bucket's origin was given up."""
        while len(self._buckets) >= _MAX_ORIGINS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[bucket] = None

    def check(self, gate: Gate, head: Head) -> None:
        """Readmit the head if the gate has its robots.txt by now, and refuse it otherwise."""
        checking = asyncio.ensure_future(self._check(gate, head))
        self._checks.add(checking)
        checking.add_done_callback(self._checks.discard)

    async def stop(self) -> None:
        """Decide nothing more."""
        checks = set(self._checks)
        for checking in checks:
            checking.cancel()
        if checks:
            await asyncio.wait(checks)

    async def _check(self, gate: Gate, head: Head) -> None:
        url = head.request.url
        error: PoliteError | None = None
        try:
            # Within a back-off, this says at once what is known. After it, robots.txt is fetched once more.
            decision = await gate.check(url)
            if decision.reason is Reason.UNREACHABLE:
                error = RobotsGivenUp(f"{redact_url(url)}: {decision}", url=url)
            else:
                self._buckets.pop(head.bucket, None)
        except Exception as failed:  # noqa: BLE001 - a head that nothing becomes of would keep the crawl open
            error = (
                failed
                if isinstance(failed, PoliteError)
                else RobotsGivenUp(f"{redact_url(url)}: {failed!r}", url=url)
            )
        if head.taken:
            return
        if error is None:
            self._readmit(head)
        else:
            self._refuse(head, error)


log: logging.Logger = logging.getLogger(__name__)

# So many requests may have their turn and wait for the engine: their origins wait with them.
_AHEAD = 16
# They are sent to no web server that could have a robots.txt.
_UNPACED = ("data:", "file:", "s3:")


class CrawlTurns:
    """What the priority queues and the middleware of one crawler share.

    A head waits in the frontier. `_pump` takes permits from there, and offers their heads to the engine. `take` is the moment when
    the engine takes the request, `enter` the one before it is sent, and `end` the last.

    Attributes:
        gate: The gate; None until the spider is opened.
        ledger: Counts what became of the requests.

    Raises:
        InvalidOption: Scrapy runs on another reactor than that of asyncio.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            raise InvalidOption(
                "polite needs asyncio: remove TWISTED_REACTOR, or set it to twisted.internet.asyncioreactor.AsyncioSelectorReactor"
            )
        self.ledger: Ledger = Ledger(crawler.stats)
        self.gate: Gate | None = None
        self._crawler = crawler
        self._engine = EngineSlot(crawler)
        self._options = Options.of(crawler)
        self._cache: Any = None
        self._shared: SharedGate | None = None
        self._frontier: Frontier | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._queues: list[PoliteQueue] = []
        self._early: list[Head] = []  # before the gate is open
        self._waiting = WaitingRequests(self._engine)
        self._given_up = GivenUpOrigins(self._put_in_frontier, self._refuse)
        self._ahead = 0
        self._room = asyncio.Event()
        self._refused: dict[Request, PoliteError] = {}
        self._granted: dict[Request, TaskPermit] = {}  # taken by the engine, not entered
        self._open: dict[Request, Permit] = {}
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
        if not self._queues:
            options.warn_of_waiting_places()
        self._engine.send_nothing_twice()
        self._cache = self._crawler.get_downloader_middleware(HttpCacheMiddleware)
        shared = await shared_gate(options.agent, options.of_gate, options.min_delay)
        shared.audience.crawlers.append(self.ledger.event)
        self._shared, self.gate = shared, shared.gate
        if self._queues:
            self._frontier = Frontier(
                self.gate, max_tries=1, max_robots_tries=options.max_robots_tries, on_end=self._on_end
            )
            self._pumping = asyncio.create_task(self._pump(self._frontier))
        early, self._early = self._early, []
        for head in early:
            self.put(head)

    async def _spider_closed(self, spider: Spider) -> None:
        for queue in self._queues:
            self.ledger.left_in_queue(len(queue))
            queue.withdraw()
        if self._frontier is not None:
            self._frontier.stop()
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.wait({self._pumping})
        await self._given_up.stop()
        for request in [*self._granted, *self._open]:
            self.end(request)
        if self._shared is not None:
            self._shared.audience.crawlers.remove(self.ledger.event)

    # Heads wait for their turn.

    def add_queue(self, queue: "PoliteQueue") -> None:
        """Note a queue whose heads will be put."""
        self._queues.append(queue)

    def put(self, head: Head) -> None:
        """Have a head wait for its turn. It is offered to its queue then, or when it is refused."""
        if self.gate is None:
            self._early.append(head)
        elif head.taken:
            pass  # it was put back before the gate was open
        elif self._needs_no_turn(head.request):
            self._offer(head)
        elif head.bucket in self._given_up:
            self._given_up.check(self.gate, head)
        else:
            self._put_in_frontier(head)

    def _put_in_frontier(self, head: Head) -> None:
        if self._frontier is not None:
            try:
                self._frontier.put_nowait(_as_sent(head.request.url), unique=False, payload=head)
            except PoliteError as error:
                self._refuse(head, error)

    def take(self, head: Head) -> Request:
        """The engine takes the request of a head, with its permit or its refusal."""
        request = head.request
        if request in self._open or request in self._granted or request in self._refused:
            # One object was yielded twice.
            request = request.copy()
        head.taken = True
        if head.error is not None:
            self._refused[request] = head.error
        if head.permit is not None:
            self._granted[request] = head.permit
            self._less_ahead()
        return request

    def withdraw(self, head: Head) -> None:
        """Forget a head that is put back, and give its turn back."""
        head.taken = True
        if head.permit is not None:
            head.permit.unsent(requeue=False)
            self._less_ahead()

    def _less_ahead(self) -> None:
        self._ahead -= 1
        self._room.set()

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
        return (
            cache.ignore_missing if cached is None else cache.policy.is_cached_response_fresh(cached, request)
        )

    async def _pump(self, frontier: Frontier) -> None:
        try:
            async for permit in frontier:
                self._grant(permit)
                while self._ahead >= _AHEAD:
                    self._room.clear()
                    await self._room.wait()
        except Exception:
            # Whatever it is: without this task nothing would be sent any more, and nothing would say so.
            log.exception("polite failed, so the spider closes")
            # A task of its own: closing the spider waits for the end of this one.
            self._closing = asyncio.create_task(
                self._crawler.engine.close_spider_async(reason="polite_failed")
            )

    def _grant(self, permit: TaskPermit) -> None:
        head: Head = permit.task.payload
        if head.taken:
            # It was put back, or its turn was lost after the engine had taken it.
            permit.unsent(requeue=False)
            return
        head.permit = permit
        self._ahead += 1
        self._offer(head)

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
            self._given_up.add(head.bucket)
            self._refuse(
                head,
                RobotsGivenUp(
                    f"{redact_url(task.url)}: given up, since its robots.txt is unreachable ({outcome.because})",
                    url=task.url,
                ),
            )

    def _refuse(self, head: Head, error: PoliteError) -> None:
        head.error = error
        self._offer(head)

    def _offer(self, head: Head) -> None:
        head.queue.offer(head)
        self._engine.wake()

    # Requests of the engine.

    async def enter(self, request: Request) -> None:
        """Wait until a request may be sent.

        Raises:
            PoliteError: It must not be sent.
        """
        if request.url.startswith(_UNPACED):
            return
        refused = self._refused.pop(request, None)
        if refused is not None:
            raise refused
        self._set_agent(request)
        granted = self._granted.pop(request, None)
        permit = self._open[request] = await (
            self._acquired(request) if granted is None else self._entered(granted, request)
        )
        if permit.url != request.url.partition("#")[0]:
            # Scrapy's own: a replaced request would pass through all middlewares again. Dots, for example, are resolved.
            request._set_url(permit.url)  # noqa: SLF001
        if self.gate is not None and self.gate.signs:
            try:
                # Scrapy connects after that: a signature must be valid for longer than this takes.
                sign(request.headers, permit, request.method)
            except BaseException as error:
                self._open.pop(request).leave(failure(error))
                raise
        self.ledger.granted()

    async def _entered(self, granted: TaskPermit, request: Request) -> Permit:
        try:
            return await granted.enter()
        except TurnLost:
            # Another process has the origin by now. The task of the frontier is ended when it is given out again.
            return await self._acquired(request)

    def _set_agent(self, request: Request) -> None:
        agent = self._options.agent.header
        if require_agent(request.headers.get("User-Agent"), agent, default=agent):
            request.headers["User-Agent"] = agent

    async def _acquired(self, request: Request) -> Permit:
        """Wait for the turn of a request that has no permit, unless the spider closes."""
        if self.gate is None:
            raise GateClosed(f"{redact_url(request.url)}: polite is not open")
        return await self._waiting.acquire(self.gate, _as_sent(request.url))

    def _head_came(self, request: Request) -> None:
        permit = self._open.get(request)
        if permit is not None:
            permit.began()

    def _response_came(self, request: Request, response: Response) -> None:
        permit = self._open.pop(request, None)
        if permit is not None:
            try:
                permit.report(status=response.status, headers=_fields(response))
                permit.received(len(response.body))
                if not brings_page(request.method):
                    permit.unread()
            finally:
                permit.leave()

    def end(self, request: Request, error: Exception | None = None) -> None:
        """End what a request has: its turn goes back if nothing was sent. May be called for each request, also twice."""
        self._refused.pop(request, None)
        granted = self._granted.pop(request, None)
        if granted is not None:
            self.ledger.unsent()
            granted.unsent(requeue=False)
        permit = self._open.pop(request, None)
        if permit is not None:
            permit.leave(error)

    def end_inactive(self) -> None:
        """End what requests have that left the engine without a word: a middleware returned another request instead."""
        if self._granted or self._refused:
            active = self._crawler.engine.downloader.active
            for request in [each for each in (*self._granted, *self._refused) if each not in active]:
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


def _fields(response: Response) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, values in response.headers.items() for value in values]
