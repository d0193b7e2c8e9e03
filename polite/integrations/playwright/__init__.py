"""Playwright: a browser whose pages and frames are checked and wait for their turn, redirect hops and popups included.

    guarded = await guard(context, gate)

Theory of operation. `page.route` sees no redirect hops, and a session of one page sees the first request of a popup too late. So
the requests of the whole browser are paused at its own CDP session: one session for each browser, however many
of its contexts are guarded. Each paused request is given to the guard of its context, which decides about it, and holds its permit
until the response's head is paused, too. Requests of contexts without a guard go on at once.
`GuardedContexts` are those of a framework, which opens and closes them itself.

If the guard cannot decide, for whatever reason, the request fails.
"""

from polite.integrations.hop import needing

with needing("Playwright", "playwright"):
    import playwright as _  # noqa: F401

from polite.integrations.playwright.context_guard import Guard, Subresources, guard

__all__ = ["Guard", "Subresources", "guard"]
