"""What a polite crawler with a browser needs besides: the gate's User-Agent, and guarded pages."""

from contextlib import suppress
from functools import partial
from typing import Any

from crawlee import Request

from polite.errors import InvalidOption, PermitMisused
from polite.frontier.permit import TaskPermit
from polite.gate.gate import Gate
from polite.http.header_fields import Headers
from polite.integrations.crawlee.request_manager import PoliteRequestManager
from polite.integrations.crawlee.skipping import skipping
from polite.integrations.entering import require_agent
from polite.origin import Target


def browser_options(kind: type, gate: Gate, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that make the browser send the gate's User-Agent; none for a crawler without a browser."""
    if _is(kind, "AdaptivePlaywrightCrawler"):
        raise InvalidOption(
            "the browser of an AdaptivePlaywrightCrawler would take no turns: use PlaywrightCrawler"
        )
    if not _is(kind, "PlaywrightCrawler"):
        return {}
    if options.get("browser_pool") is not None:
        raise InvalidOption(
            "polite_crawler sets the browser's User-Agent: give browser_launch_options instead of browser_pool"
        )
    if options.get("fingerprint_generator") is not None:
        raise InvalidOption("a fingerprint_generator invents a User-Agent: leave it out")
    if options.get("browser_type") not in (None, "chromium", "chrome"):
        raise InvalidOption(
            f"polite can pause the requests of Chromium only, got browser_type={options['browser_type']!r}"
        )
    context = dict(options.get("browser_new_context_options") or {})
    require_agent(context.get("user_agent"), gate.agent.header, default="")
    context["user_agent"] = gate.agent.header
    return {"browser_new_context_options": context, "fingerprint_generator": None}


def guard_pages(crawler: Any, manager: PoliteRequestManager) -> None:  # noqa: ANN401 - a crawler of any kind
    """Have the pages of a crawler with a browser guarded: the browser sends them, not the HTTP client."""
    if _is(type(crawler), "PlaywrightCrawler"):
        crawler.pre_navigation_hook(GuardedPages(manager).before)


class GuardedPages:
    """Guards each context of the browser, and gives a page the turn of its request.

    Documents take a turn for each redirect hop, as `polite.integrations.playwright.guard` has it.
    """

    def __init__(self, manager: PoliteRequestManager) -> None:
        self._manager = manager
        self._contexts: Any = None

    async def before(self, context: Any) -> None:  # noqa: ANN401 - crawlee's PlaywrightPreNavCrawlingContext
        """A hook before a page is loaded. crawlee calls the page's `goto` next, with the URL of the request."""
        page = context.page
        if self._contexts is None:
            # It cannot be imported where Playwright is not installed.
            from polite.integrations.playwright.guarded_contexts import GuardedContexts  # noqa: PLC0415

            self._contexts = GuardedContexts(self._manager.gate)
        guarded = await self._contexts.guard_of(page.context)
        # This attribute of the page goes before the method of its class.
        vars(page)["goto"] = partial(self._goto, guarded, page, page.goto, [context.request])

    async def _goto(
        self,
        guarded: Any,  # noqa: ANN401
        page: Any,  # noqa: ANN401
        goto: Any,  # noqa: ANN401
        requests: list[Request],
        url: str,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if not requests:
            # The handler loads another page.
            return await guarded.goto(page, url, **options)
        request = requests.pop()
        with skipping(self._manager, url):
            async with guarded.turn(page, url, _turn_of(self._manager.take_permit(request))):
                return await goto(url, **options)


class _PageTurn:
    """The permit of a request. What becomes of it sends no task back to the frontier: crawlee retries by itself."""

    def __init__(self, permit: TaskPermit) -> None:
        self._permit = permit

    @property
    def valid(self) -> bool:
        return self._permit.valid

    @property
    def target(self) -> Target:
        return self._permit.target

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        self._permit.report(status=status, headers=headers)

    def leave(self, error: BaseException | None = None) -> None:
        if isinstance(error, Exception):
            with suppress(PermitMisused):  # it was reported, or is left already
                self._permit.report(status=0)
        self._permit.leave()

    def unsent(self) -> None:
        self._permit.unsent(requeue=False)


def _turn_of(permit: TaskPermit | None) -> _PageTurn | None:
    """Return the turn that a page has. None: it was lost, or a hook of the crawler has used it."""
    if permit is None:
        return None
    if not permit.valid:
        permit.leave()
        return None
    return _PageTurn(permit)


def _is(kind: type, name: str) -> bool:
    # Their modules cannot be imported where Playwright is not installed.
    return any(base.__name__ == name for base in kind.__mro__)
