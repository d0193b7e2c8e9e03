"""guard: makes a browser context polite."""

from collections.abc import Mapping
from typing import Any, get_args

from playwright.async_api import Browser, BrowserContext, CDPSession

from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.integrations.entering import require_agent, require_gate
from polite.integrations.playwright.context_guard import Guard, Subresources
from polite.integrations.playwright.paused_requests import paused_requests


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
    requests = await paused_requests(_chromium_of(context))
    context_key, agent = await _prepared(context)
    require_agent(agent, gate.agent.header, default=requests.agent)
    guarded = Guard(context, gate, subresources, requests)
    requests.add(context_key, guarded)
    await guarded.begin()
    return guarded


def _chromium_of(context: BrowserContext) -> Browser:
    if not isinstance(context, BrowserContext):
        raise InvalidOption(f"guard needs a BrowserContext of playwright.async_api, got {context!r}")
    browser = context.browser
    if browser is None or browser.browser_type.name != "chromium":
        raise InvalidOption("guard needs a context of Chromium: other browsers have no CDP")
    return browser


async def _prepared(context: BrowserContext) -> tuple[str, str]:
    """Return the context's key in CDP, and its User-Agent. Service workers are unregistered."""
    # Both are known of pages only.
    page = context.pages[0] if context.pages else None
    asked = page or await context.new_page()
    try:
        session = await context.new_cdp_session(asked)
        target = (await session.send("Target.getTargetInfo"))["targetInfo"]
        said = await session.send("Runtime.evaluate", {"expression": "navigator.userAgent"})
        await _unregister_service_workers(session)
        await session.detach()
    finally:
        if page is None:
            await asked.close()
    return target.get("browserContextId", ""), said["result"]["value"]


async def _unregister_service_workers(session: CDPSession) -> None:
    """Unregister what would request documents in the place of its pages, unseen while it is started."""
    scopes: set[str] = set()

    def noted(event: Mapping[str, Any]) -> None:
        scopes.update(each["scopeURL"] for each in event["registrations"] if not each["isDeleted"])

    session.on("ServiceWorker.workerRegistrationUpdated", noted)
    # It tells of all registrations before it returns the next command.
    await session.send("ServiceWorker.enable")
    await session.send("ServiceWorker.stopAllWorkers")
    for scope in scopes:
        await session.send("ServiceWorker.unregister", {"scopeURL": scope})
