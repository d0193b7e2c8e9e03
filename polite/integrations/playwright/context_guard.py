"""Guard: what becomes of the requests of one browser context, which are paused at the session of its browser."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args
from weakref import WeakKeyDictionary

from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Error,
    Page,
    Request,
    Response,
    WebSocket,
)

from polite.errors import InvalidOption, InvalidURL, PoliteError
from polite.gate.gate import Gate
from polite.http.header_fields import Headers
from polite.integrations.hop import require_agent, require_gate
from polite.options import instance
from polite.origin import Target

Subresources = Literal["check", "pace", "allow"]
"""What becomes of requests other than documents: checked by robots.txt, or checked and paced, or neither."""

# Seconds between looks for requests that were abandoned without an event of their page: those of workers.
_SWEEP_S = 1.0
# Frames whose refusals are remembered.
_MAX_REFUSALS = 1_000


class HeldTurn(Protocol):
    """A turn that a request may use: a permit of `gate.acquire`, or what stands for one."""

    @property
    def valid(self) -> bool: ...

    @property
    def target(self) -> Target: ...

    def report(self, *, status: int, headers: Headers | None = None) -> object: ...

    def leave(self, error: BaseException | None = None) -> None: ...

    def unsent(self) -> None: ...


# What a browser accepts as the icon of a page, which nothing else says of that request.
_ACCEPTS_AN_ICON = "image/"
# Why a request failed that says nothing of the server: the page was left, or a handler of the crawler's aborted it.
_OWN_FAILURES = frozenset({"Aborted", "BlockedByClient"})


class PausedRequest:
    """An event Fetch.requestPaused of the Chrome DevTools Protocol.

    Attributes:
        key: The interception: another one for each redirect hop.
        frame: The frame, or the worker, that makes the request.
        url: What it requests.
        kind: The resource type, such as Document.
        status: That of the response, None before it came.
        failure: Why no response came, None otherwise. With neither, it is not sent yet.
        fields: The header of the request.
        response_fields: The header of the response.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        request = event["request"]
        self.key: str = event["requestId"]
        self.frame: str = event["frameId"]
        self.url: str = request["url"]
        self.kind: str = event["resourceType"]
        self.status: int | None = event.get("responseStatusCode")
        self.failure: str | None = event.get("responseErrorReason")
        self.fields: Mapping[str, str] = request["headers"]
        self.response_fields: list[tuple[str, str]] = [
            (field["name"], field["value"]) for field in event.get("responseHeaders", ())
        ]

    @property
    def is_document(self) -> bool:
        """Whether it is a page or a frame."""
        return self.kind == "Document"

    def field(self, name: str) -> str | None:
        return next((value for field, value in self.fields.items() if field.lower() == name), None)


def is_fetched(url: str) -> bool:
    return url.partition(":")[0].lower() in {"http", "https"}


# What Playwright says if Chromium itself refused a command, and what that says of a request that was abandoned meanwhile.
_REFUSED, _GONE = "Protocol error", "Invalid InterceptionId"
# Frames inside pages that are remembered, in case that several contexts are open.
_MAX_FRAMES = 10_000


class PausedRequests:
    """Pauses each request of a browser, and gives it to the guard of its context.

    Attributes:
        agent: The User-Agent of contexts that were given none.
    """

    agent: str
    _session: CDPSession

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._opened = False
        self._opening = asyncio.Lock()
        self._guards: dict[str, Guard] = {}
        # Frames and workers that are targets: the contexts, and the types, of those.
        self._targets: dict[str, tuple[str, str]] = {}
        # Frames inside pages, once they were looked up.
        self._frames: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Pause the browser's requests from now on, if they are not yet."""
        async with self._opening:
            if self._opened:
                return
            session = self._session = await self._browser.new_browser_cdp_session()
            session.on("Target.targetCreated", self._target_created)
            session.on("Target.targetDestroyed", self._target_destroyed)
            session.on("Fetch.requestPaused", self._paused)
            self.agent = (await session.send("Browser.getVersion"))["userAgent"]
            await session.send("Target.setDiscoverTargets", {"discover": True})
            # The heads of responses are asked for with each request that takes a permit.
            await session.send("Fetch.enable", {"patterns": [{"requestStage": "Request"}]})
            self._opened = True

    def add(self, context_key: str, guard: "Guard") -> None:
        """Give the requests of a context to its guard.

        Raises:
            InvalidOption: It has one.
        """
        if context_key in self._guards:
            raise InvalidOption("the context has a guard already: one is enough for all of its pages")
        self._guards[context_key] = guard

    def remove(self, guard: "Guard") -> None:
        """The context is closed."""
        self._guards = {key: other for key, other in self._guards.items() if other is not guard}

    def is_service(self, frame: str) -> bool:
        """Return whether it is a service worker and no frame."""
        return self._targets.get(frame, ("", ""))[1] == "service_worker"

    async def resume(
        self, request: PausedRequest, *, agent: str | None = None, to_head: bool = False
    ) -> bool:
        """Send the request, or let its response go on. Return whether that was possible: the page may be gone.

        Args:
            request: A request that is paused.
            agent: Another User-Agent.
            to_head: Pause it again when the head of its response came.
        """
        options: dict[str, Any] = {"requestId": request.key}
        if to_head:
            options["interceptResponse"] = True
        if agent is not None:
            fields = {name: value for name, value in request.fields.items() if name.lower() != "user-agent"}
            fields["User-Agent"] = agent
            options["headers"] = [{"name": name, "value": value} for name, value in fields.items()]
        return await self._send("Fetch.continueRequest", options) is None

    async def block(self, request: PausedRequest) -> None:
        """Fail the request, which is not sent."""
        await self._send("Fetch.failRequest", {"requestId": request.key, "errorReason": "BlockedByClient"})

    async def is_gone(self, request: PausedRequest) -> bool:
        """Return whether the browser abandoned the request, paused or not.

        Chromium tells no browser session of it. This command is an error for every request without a head, and changes nothing; its
        words say whether there is such a request.
        """
        said = await self._send("Fetch.getResponseBody", {"requestId": request.key})
        if said is None:
            return False  # its head came this moment
        # Whatever else is wrong, there is no browser.
        return _GONE in said or _REFUSED not in said

    async def _send(self, method: str, options: dict[str, Any]) -> str | None:
        """Send a command, and return what was wrong with it."""
        try:
            await self._session.send(method, options)
        except Error as error:
            return str(error)
        return None

    def _paused(self, event: Mapping[str, Any]) -> None:
        async def give(request: PausedRequest) -> None:
            guard = await self._guard_of(request.frame) if is_fetched(request.url) else None
            await (self.resume(request) if guard is None else guard.handle(request))

        self.begin(give(PausedRequest(event)))

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this in a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _target_created(self, event: Mapping[str, Any]) -> None:
        target = event["targetInfo"]
        self._targets[target["targetId"]] = target.get("browserContextId", ""), target["type"]

    def _target_destroyed(self, event: Mapping[str, Any]) -> None:
        self._targets.pop(event["targetId"], None)
        for guard in list(self._guards.values()):
            guard.target_gone(event["targetId"])

    async def _guard_of(self, frame: str) -> "Guard | None":
        """Return the guard of a frame's context, None if that has none."""
        if not self._guards:
            return None
        if frame in self._targets:
            return self._guards.get(self._targets[frame][0])
        if frame not in self._frames:
            await self._look_up(frame)
        return self._guards.get(self._frames[frame])

    async def _look_up(self, frame: str) -> None:
        """Find the context of a frame that is no target: it is inside a page."""
        if len(self._frames) >= _MAX_FRAMES:
            self._frames.clear()
        contexts = {context for context, kind in self._targets.values() if kind == "page"}
        if len(contexts) > 1:
            pages = [page for context in self._browser.contexts for page in context.pages]
            inner = [frame for page in pages for frame in page.frames if frame is not page.main_frame]
            for known in [*pages, *inner]:
                # It is closed; or it is a frame in the process of its page, which knows it.
                with suppress(Error):
                    page = known if isinstance(known, Page) else known.page
                    session = await page.context.new_cdp_session(known)
                    try:
                        target = (await session.send("Target.getTargetInfo"))["targetInfo"]
                        tree = (await session.send("Page.getFrameTree"))["frameTree"]
                    finally:
                        await session.detach()
                    # All frames in the process of the page, or of a frame that has one of its own.
                    self._frames.update(dict.fromkeys(_flat([tree]), target.get("browserContextId", "")))
                if frame in self._frames:
                    return
        # The only context; or the frame is gone: any guard is better than none.
        alone = contexts.pop() if len(contexts) == 1 else next(iter(self._guards))
        self._frames[frame] = alone


def _flat(trees: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for tree in trees:
        yield tree["frame"]["id"]
        yield from _flat(tree.get("childFrames", ()))


_of_browsers: WeakKeyDictionary[Browser, PausedRequests] = WeakKeyDictionary()


@dataclass
class _Open:
    """A request that waits for its turn, or has it.

    Attributes:
        task: Waits for the permit.
        permit: None while it waits.
    """

    request: PausedRequest
    task: asyncio.Task[None]
    permit: HeldTurn | None = None


class Guard:
    """Checks and paces the requests of a browser context until that is closed. Made by `guard`.

    Example:
        guarded = await guard(context, gate)
        page = await context.new_page()
        response = await guarded.goto(page, "https://example.com/about")

    Attributes:
        context: The context.
    """

    def __init__(
        self, context: BrowserContext, gate: Gate, subresources: Subresources, requests: PausedRequests
    ) -> None:
        self.context = context
        self._gate = gate
        self._subresources = subresources
        self._requests = requests
        self._open: dict[str, _Open] = {}
        # Permits that were taken before the request, by frame.
        self._ahead: dict[str, HeldTurn] = {}
        # Why the last document of a frame was blocked.
        self._refusals: dict[str, PoliteError] = {}
        self._targets: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self._sweep: asyncio.TimerHandle | None = None

    async def begin(self) -> None:
        """Listen to the context from now on. What its pages have sent before is charged. No part of the public API."""
        self.context.on("page", self._page_opened)
        self.context.on("requestfailed", self._abandoned)
        self.context.on("close", self._end)
        for page in self.context.pages:
            self._charge(page.url)
            await self._meet(page, is_new=False)

    async def goto(self, page: Page, url: str, **options: Any) -> Response | None:
        """Wait for the turn of a URL, and then call `page.goto`, whose time-out does not count the wait.

        The waits of redirect hops count. What is not of http or https, such as about:blank, waits for nothing.

        Args:
            page: A page of a guarded context.
            url: The URL.
            options: Those of `page.goto`.

        Raises:
            Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded: As by `gate.permit`, of the URL or of a hop.
            InvalidUserAgent: The page has another User-Agent than the gate.
        """
        if not is_fetched(url) and ":" in url:
            return await page.goto(url, **options)
        async with self.turn(page, url):
            return await page.goto(url, **options)

    @asynccontextmanager
    async def turn(self, page: Page, url: str, permit: HeldTurn | None = None) -> AsyncIterator[None]:
        """Return a block in which the page's next request of the URL has its turn: `async with guarded.turn(page, url):`.

        A permit of `gate.acquire` for the URL is taken over, such as one that was awaited before the page was opened.

        For libraries that call `page.goto` themselves. Raises what `goto` raises, on entering, or instead of Playwright's error if
        the page's document was blocked inside.
        """
        try:
            frame = await self.target_of(page)
        except BaseException:
            if permit is not None:
                permit.unsent()
            raise
        self._refusals.pop(frame, None)
        permit = permit or await self._gate.acquire(url)
        before, self._ahead[frame] = self._ahead.get(frame), permit
        if before is not None:
            before.unsent()
        try:
            yield
        except Error as error:
            if (refusal := self._refusals.get(frame)) is not None:
                raise refusal from error
            raise
        finally:
            if self._ahead.get(frame) is permit:
                # No request used it.
                del self._ahead[frame]
                permit.unsent()

    async def refusal(self, page: Page) -> PoliteError | None:
        """Return why the page's last document was blocked; None if it was not."""
        return self._refusals.get(await self.target_of(page))

    async def target_of(self, page: Page) -> str:
        """Return the page's key in CDP, which is that of its main frame, too. No part of the public API."""
        if page not in self._targets or page.is_closed():
            await self._meet(page, is_new=True)
        return self._targets[page]

    async def handle(self, request: PausedRequest) -> None:
        """Decide about a request that is not sent yet, or take note of the head of its response. No part of the public API."""
        if request.status is not None or request.failure is not None:
            opened = self._open.pop(request.key, None)
            if opened is not None and opened.permit is not None:
                if request.status is not None:
                    opened.permit.report(status=request.status, headers=request.response_fields)
                failed = request.failure is not None and request.failure not in _OWN_FAILURES
                opened.permit.leave(ConnectionError(f"{request.url}: {request.failure}") if failed else None)
            await self._requests.resume(request)
            return
        if request.is_document:
            self._refusals.pop(request.frame, None)
        resumed = False
        try:
            resumed = await self._decide(request)
        except PoliteError as error:
            if request.is_document:
                while len(self._refusals) >= _MAX_REFUSALS:
                    del self._refusals[next(iter(self._refusals))]
                self._refusals[request.frame] = error
        finally:
            if not resumed:
                await self._requests.block(request)

    def target_gone(self, target: str) -> None:
        """Forget a target (a page, a frame or a worker) that was closed. No part of the public API."""
        self._refusals.pop(target, None)
        self._look_for(lambda request: request.frame == target)

    async def _decide(self, request: PausedRequest) -> bool:
        """Send the request in its turn, if it may be sent. Return whether it was."""
        gate, header = self._gate, self._gate.agent.header
        needed = require_agent(request.field("user-agent"), header, default=self._requests.agent)
        agent = header if needed else None
        if self._requests.is_service(request.frame):
            # Once installed, it would request documents in the place of its pages, and be updated unseen.
            return False
        if request.is_document or self._subresources == "pace":
            return await self._send_in_turn(request, agent)
        if self._subresources == "check" and not (await gate.check(request.url)).allowed:
            return False
        sent = await self._requests.resume(request, agent=agent)
        if sent and request.kind == "Other" and (request.field("accept") or "").startswith(_ACCEPTS_AN_ICON):
            self._charge(request.url)
        return sent

    async def _send_in_turn(self, request: PausedRequest, agent: str | None) -> bool:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        opened = self._open[request.key] = _Open(request, task)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_SWEEP_S, self._swept)
        try:
            permit = self._ahead.get(request.frame)
            if permit is not None and permit.valid and Target.of(request.url) == permit.target:
                opened.permit = self._ahead.pop(request.frame)
            else:
                opened.permit = await self._gate.acquire(request.url)
            sent = await self._requests.resume(request, agent=agent, to_head=True)
        except BaseException as error:
            self._leave(request.key, error if opened.permit is None else None)
            raise
        if not sent and self._open.pop(request.key, None) is not None:
            opened.permit.unsent()
        return sent

    def _leave(self, key: str, error: BaseException | None = None) -> None:
        """The request ended: it was abandoned, or never had its turn."""
        opened = self._open.pop(key, None)
        if opened is not None and opened.permit is not None:
            opened.permit.leave(error)

    def _page_opened(self, page: Page) -> None:
        async def meet() -> None:
            with suppress(Error):  # it is closed
                await self.target_of(page)

        page.on("websocket", self._socket_opened)
        self._requests.begin(meet())

    async def _meet(self, page: Page, *, is_new: bool) -> None:
        """Learn the page's key. Charge what it sends without being paused."""
        session = await self.context.new_cdp_session(page)
        self._targets[page] = (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
        session.on("Preload.prefetchStatusUpdated", self._prefetched)
        await session.send("Preload.enable")
        if not is_new:
            page.on("websocket", self._socket_opened)
            # That renews how its scripts load, so that what they load is paused from now on.
            await session.send("Fetch.enable")
            await session.send("Fetch.disable")

    def _prefetched(self, event: Mapping[str, Any]) -> None:
        # Chromium pauses no prefetch of speculation rules: it was sent.
        if event["status"] == "Running":
            self._charge(event["prefetchUrl"])

    def _socket_opened(self, socket: WebSocket) -> None:
        # A WebSocket is not paused either.
        self._charge(f"http{socket.url.removeprefix('ws')}")

    def _charge(self, url: str) -> None:
        if is_fetched(url):
            with suppress(InvalidURL):
                self._gate.charge(url)

    def _abandoned(self, failed: Request) -> None:
        """A request failed, perhaps since its page has left it."""
        url = failed.url.partition("#")[0]
        self._look_for(lambda request: request.url == url)

    def _look_for(self, matches: Callable[[PausedRequest], bool]) -> None:
        """End those requests that match and are gone."""

        async def probe(opened: _Open) -> None:
            if await self._requests.is_gone(opened.request):
                self._give_up(opened)

        for opened in list(self._open.values()):
            if matches(opened.request):
                self._requests.begin(probe(opened))

    def _give_up(self, opened: _Open) -> None:
        if opened.permit is None:
            opened.task.cancel()
        else:
            self._leave(opened.request.key)

    def _swept(self) -> None:
        self._sweep = None
        self._look_for(lambda _: True)
        if self._open:
            self._sweep = asyncio.get_running_loop().call_later(_SWEEP_S, self._swept)

    def _end(self, _: object) -> None:
        """The context is closed: nothing waits, and nothing is held."""
        self._requests.remove(self)
        for opened in list(self._open.values()):
            self._give_up(opened)
        if self._sweep is not None:
            self._sweep.cancel()


async def guard(context: BrowserContext, gate: Gate, subresources: Subresources = "check") -> Guard:
    """Have each request of a browser context decided by a gate, until the context is closed.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate, async_playwright() as playwright:
            browser = await playwright.chromium.launch()
            context = await browser.new_context(user_agent=gate.agent.header)
            guarded = await guard(context, gate)
            response = await guarded.goto(await context.new_page(), "https://example.com/about")

    Documents, which are pages, popups and frames, take a permit for each redirect hop, and leave it when the head of the response
    comes. What may not be fetched is blocked: `page.goto` raises Playwright's net::ERR_BLOCKED_BY_CLIENT, and `Guard.goto` what the
    gate says. A request that the page abandons leaves its permit.

    Requests that were sent before, or that Chromium does not pause, are charged: those of pages that the context has, WebSockets
    and prefetches of speculation rules. So are icons, unless they are paced. Service workers are not installed, and those that the
    context has are unregistered, since they request documents in the place of pages, and are updated unseen.

    Args:
        context: A context of Chromium, from `playwright.async_api`.
        gate: A gate of `polite.open_gate`. The guard does not close it. When it is closed, all further requests are blocked.
        subresources: What becomes of the other requests, such as images, scripts and those of scripts and workers: `check` blocks
            those that robots.txt disallows, `pace` gives each a turn of its own, too, and `allow` does nothing.

    Raises:
        InvalidUserAgent: The context has another User-Agent than the gate. If it was given none, the gate's is sent.
        InvalidOption: It is no context of Chromium, or it has a guard.
    """
    require_gate(gate, user="guard")
    if subresources not in get_args(Subresources):
        raise InvalidOption(f"subresources must be check, pace or allow, got {subresources!r}")
    browser = instance("guard: context", context, BrowserContext, "one of playwright.async_api").browser
    if browser is None or browser.browser_type.name != "chromium":
        raise InvalidOption("guard needs a context of Chromium: other browsers have no CDP")
    requests = _of_browsers.setdefault(browser, PausedRequests(browser))
    await requests.open()
    context_key, agent = await _prepared(context)
    require_agent(agent, gate.agent.header, default=requests.agent)
    guarded = Guard(context, gate, subresources, requests)
    requests.add(context_key, guarded)
    await guarded.begin()
    return guarded


async def _prepared(context: BrowserContext) -> tuple[str, str]:
    """Return the context's key in CDP, and its User-Agent. Service workers are unregistered."""
    scopes: set[str] = set()

    def noted(event: Mapping[str, Any]) -> None:
        scopes.update(each["scopeURL"] for each in event["registrations"] if not each["isDeleted"])

    # All of it is known of pages only.
    page = context.pages[0] if context.pages else None
    asked = page or await context.new_page()
    try:
        session = await context.new_cdp_session(asked)
        target = (await session.send("Target.getTargetInfo"))["targetInfo"]
        said = await session.send("Runtime.evaluate", {"expression": "navigator.userAgent"})
        # They would request documents in the place of its pages, unseen while they are started.
        session.on("ServiceWorker.workerRegistrationUpdated", noted)
        # It tells of all registrations before it returns the next command.
        await session.send("ServiceWorker.enable")
        await session.send("ServiceWorker.stopAllWorkers")
        for scope in scopes:
            await session.send("ServiceWorker.unregister", {"scopeURL": scope})
        await session.detach()
    finally:
        if page is None:
            await asked.close()
    return target.get("browserContextId", ""), said["result"]["value"]


class GuardedContexts:
    """Guards each context when its first page is opened, and forgets it when it is closed: a crawl may have one for each page.

    Args:
        gate, subresources: As for `guard`.

    Attributes:
        guards: By context.
    """

    def __init__(self, gate: Gate, subresources: Subresources = "check") -> None:
        self._gate = gate
        self._subresources: Subresources = subresources
        self.guards: dict[BrowserContext, Guard] = {}
        self._guarding = asyncio.Lock()

    async def guard_of(self, context: BrowserContext) -> Guard:
        """Return the guard of a context. Raises what `guard` raises."""
        async with self._guarding:
            guarded = self.guards.get(context)
            if guarded is None:
                guarded = self.guards[context] = await guard(context, self._gate, self._subresources)
                context.on("close", lambda _: self.guards.pop(context, None))
            return guarded
