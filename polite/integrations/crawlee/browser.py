"""What a polite crawler with a browser needs besides: the gate's User-Agent, and hooks that report each page."""

from contextlib import suppress
from typing import Any

from polite.errors import InvalidOption, InvalidURL
from polite.gate.gate import Gate
from polite.integrations.crawlee.request_manager import PoliteRequestManager
from polite.integrations.entering import require_agent


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
    context = dict(options.get("browser_new_context_options") or {})
    require_agent(context.get("user_agent"), gate.agent.header, default="")
    context["user_agent"] = gate.agent.header
    return {"browser_new_context_options": context, "fingerprint_generator": None}


def follow_pages(crawler: Any, manager: PoliteRequestManager) -> None:  # noqa: ANN401 - a crawler of any kind
    """Have a crawler with a browser report its pages: the browser sends them, not the HTTP client."""
    if not _is(type(crawler), "PlaywrightCrawler"):
        return

    async def hold(context: Any) -> None:  # noqa: ANN401
        await manager.browse(context.request)

    async def report(context: Any) -> None:  # noqa: ANN401
        permit = manager.take_permit(context.request)
        if permit is not None:
            permit.report(status=context.response.status, headers=context.response.headers)
            permit.leave()
        for url in _hops(context.response):
            _charge(manager.gate, url)

    crawler.pre_navigation_hook(hold)
    crawler.post_navigation_hook(report)


def _is(kind: type, name: str) -> bool:
    # Their modules cannot be imported where Playwright is not installed.
    return any(base.__name__ == name for base in kind.__mro__)


def _hops(response: Any) -> list[str]:  # noqa: ANN401
    """Return the URLs that the browser was redirected to, which it requested without asking."""
    urls, request = [], response.request
    while request.redirected_from is not None:
        urls.append(request.url)
        request = request.redirected_from
    return urls


def _charge(gate: Gate, url: str) -> None:
    with suppress(InvalidURL):  # such as about:blank
        gate.charge(url)
