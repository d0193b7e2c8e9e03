"""PausedRequests: the requests of one browser, paused at its CDP session and given to the guards of their contexts."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from playwright.async_api import Browser, BrowserContext, CDPSession, Error, Frame, Page

from polite.errors import InvalidOption

# What a browser accepts as the icon of a page, which nothing else says of that request.
_ACCEPTS_AN_ICON = "image/"
# Why a request failed that says nothing of the server: the page was left, or a handler of the crawler's aborted it.
_OWN_FAILURES = frozenset({"Aborted", "BlockedByClient"})


@dataclass(frozen=True)
class PausedRequest:
    """An event Fetch.requestPaused of the Chrome DevTools Protocol.

    Attributes:
        key: The interception: another one for each redirect hop.
        frame: The frame, or the worker, that makes the request.
        url: What it requests.
        kind: The resource type, such as Document.
        status: That of the response, None before it came.
        failure: Why no response came, None otherwise.
        has_head: It is paused since the head of its response came, or none will come.
        fields: The header of the request.
        response_fields: The header of the response.
    """

    key: str
    frame: str
    url: str
    kind: str
    status: int | None
    failure: str | None
    fields: Mapping[str, str]
    response_fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "PausedRequest":
        request = event["request"]
        return cls(
            event["requestId"],
            event["frameId"],
            request["url"],
            event["resourceType"],
            event.get("responseStatusCode"),
            event.get("responseErrorReason"),
            request["headers"],
            tuple((field["name"], field["value"]) for field in event.get("responseHeaders", ())),
        )

    @property
    def has_head(self) -> bool:
        return self.status is not None or self.failure is not None

    @property
    def is_fetched(self) -> bool:
        """Whether a server answers it. What is not of http, such as data:, never leaves the browser."""
        return is_fetched(self.url)

    @property
    def is_document(self) -> bool:
        """Whether it is a page or a frame."""
        return self.kind == "Document"

    @property
    def is_icon(self) -> bool:
        return self.kind == "Other" and (self.field("accept") or "").startswith(_ACCEPTS_AN_ICON)

    @property
    def agent(self) -> str | None:
        """Its User-Agent. The main scripts of workers get theirs later."""
        return self.field("user-agent")

    @property
    def error(self) -> ConnectionError | None:
        """The failure for `Permit.leave`, None if it is the crawler's own."""
        if self.failure is None or self.failure in _OWN_FAILURES:
            return None
        return ConnectionError(f"{self.url}: {self.failure}")

    def field(self, name: str) -> str | None:
        return next((value for field, value in self.fields.items() if field.lower() == name), None)

    def fields_with_agent(self, agent: str) -> list[dict[str, str]]:
        """Return its header with another User-Agent."""
        return [{"name": name, "value": value} for name, value in self._fields_of(agent)]

    def _fields_of(self, agent: str) -> Iterator[tuple[str, str]]:
        yield from ((name, value) for name, value in self.fields.items() if name.lower() != "user-agent")
        yield "User-Agent", agent


def is_fetched(url: str) -> bool:
    return url.partition(":")[0].lower() in {"http", "https"}


# What Playwright says if Chromium itself refused a command, and what that says of a request that was abandoned meanwhile.
_REFUSED, _GONE = "Protocol error", "Invalid InterceptionId"
# Frames inside pages that are remembered, in case that several contexts are open.
_MAX_FRAMES = 10_000


class Requests(Protocol):
    """What a guard of a context does with the paused requests of it."""

    context: BrowserContext

    async def handle(self, request: PausedRequest) -> None: ...

    def target_gone(self, target: str) -> None: ...


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
        self._guards: dict[str, Requests] = {}
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

    def add(self, context_key: str, guard: Requests) -> None:
        """Give the requests of a context to its guard.

        Raises:
            InvalidOption: It has one.
        """
        if context_key in self._guards:
            raise InvalidOption("the context has a guard already: one is enough for all of its pages")
        self._guards[context_key] = guard

    def remove(self, guard: Requests) -> None:
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
            options["headers"] = request.fields_with_agent(agent)
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
        task = asyncio.get_running_loop().create_task(self._give(PausedRequest.of(event)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _give(self, request: PausedRequest) -> None:
        guard = await self._guard_of(request.frame) if request.is_fetched else None
        if guard is None:
            await self.resume(request)
        else:
            await guard.handle(request)

    def _target_created(self, event: Mapping[str, Any]) -> None:
        target = event["targetInfo"]
        self._targets[target["targetId"]] = target.get("browserContextId", ""), target["type"]

    def _target_destroyed(self, event: Mapping[str, Any]) -> None:
        self._targets.pop(event["targetId"], None)
        for guard in list(self._guards.values()):
            guard.target_gone(event["targetId"])

    async def _guard_of(self, frame: str) -> Requests | None:
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
            for known in self._pages_and_frames():
                await self._look_into(known)
                if frame in self._frames:
                    return
        # The only context; or the frame is gone: any guard is better than none.
        alone = contexts.pop() if len(contexts) == 1 else next(iter(self._guards))
        self._frames[frame] = alone

    def _pages_and_frames(self) -> list[Page | Frame]:
        pages = [page for context in self._browser.contexts for page in context.pages]
        return [*pages, *(frame for page in pages for frame in page.frames if frame is not page.main_frame)]

    async def _look_into(self, known: Page | Frame) -> None:
        # It is closed; or it is a frame in the process of its page, which knows it.
        with suppress(Error):
            key, frames = await _frames_of(known)
            self._frames.update(dict.fromkeys(frames, key))


async def _frames_of(known: Page | Frame) -> tuple[str, list[str]]:
    """Return the context of a page, or of a frame in a process of its own, and all frames in that process."""
    context = known.context if isinstance(known, Page) else known.page.context
    session = await context.new_cdp_session(known)
    try:
        target = (await session.send("Target.getTargetInfo"))["targetInfo"]
        tree = (await session.send("Page.getFrameTree"))["frameTree"]
    finally:
        await session.detach()
    return target.get("browserContextId", ""), list(_flat([tree]))


def _flat(trees: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for tree in trees:
        yield tree["frame"]["id"]
        yield from _flat(tree.get("childFrames", ()))


_of_browsers: WeakKeyDictionary[Browser, PausedRequests] = WeakKeyDictionary()


async def paused_requests(browser: Browser) -> PausedRequests:
    """Return those of a browser, which are paused from now on."""
    requests = _of_browsers.get(browser)
    if requests is None:
        requests = _of_browsers[browser] = PausedRequests(browser)
    await requests.open()
    return requests
