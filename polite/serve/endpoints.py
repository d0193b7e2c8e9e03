"""The operations of the API: permits, decisions, streams, and what a gate knows of a site."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any, get_args

from aiohttp import web

from polite.errors import (
    GateClosed,
    InvalidOption,
    InvalidURL,
    OriginDeclined,
    Overloaded,
    PermitMisused,
    PoliteError,
    StoreFailed,
    TurnLost,
    redact_url,
)
from polite.events import Event
from polite.gate.gate import Gate
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable
from polite.robots.result import Found
from polite.serve.api import JSON_HEADERS, ApiError, Call, Field, document, encode, json_response, operation
from polite.serve.fetching import Relay
from polite.serve.permits import Held, Permits
from polite.sitemaps.entry import SitemapPolicy
from polite.status.orders import act, standing
from polite.terms.usage import usage

# Requests that may wait for one permit: a client whose connection broke asks again.
_MOST_POLLS = 4
# Streams of events, and events that wait for one slow client.
_MOST_STREAMS, _MOST_QUEUED = 32, 1_000
# Seconds after which a quiet stream says that it is there, and in which a client must read.
_QUIET_S, _SLOW_S = 15.0, 10.0
# The longest wait of one request (seconds).
_LONGEST_S = 60


@dataclass(slots=True)
class Services:
    """What operations need.

    Attributes:
        gate: The gate.
        permits: The permits of all clients.
        relay: Fetches for clients.
        metrics: Returns the metrics as text; None without prometheus-client.
        may_look: Whether the client with a token of this name may see what others do.
        may_order: Whether it may give an operator's orders.
        streams: How many streams of events are open.
    """

    gate: Gate
    permits: Permits
    relay: Relay
    metrics: Callable[[], bytes] | None
    may_look: Callable[[str], bool]
    may_order: Callable[[str], bool]
    streams: int = 0


def decision_of(url: str, decision: Decision) -> dict[str, object]:
    """Return a decision as JSON has it."""
    rule, cause = decision.rule, decision.cause
    return {
        "url": redact_url(url),
        "allowed": decision.allowed,
        "reason": decision.reason.name,
        "cause": None if cause is None else cause.name,
        "rule": None if rule is None else str(rule).rpartition(" (")[0],
        "line": None if rule is None else rule.line,
        "text": str(decision),
    }


_STATUSES: tuple[tuple[type[PoliteError], int], ...] = (
    *((Disallowed, 403), (InvalidURL, 400), (InvalidOption, 400), (TurnLost, 410)),
    *((PermitMisused, 409), (Overloaded, 429), (GateClosed, 503), (StoreFailed, 503)),
)


def refusal_of(error: PoliteError) -> ApiError:
    """Return the answer that says why the gate refused."""
    match error:
        case RobotsUnreachable() if error.decision.cause is None or error.decision.cause.may_pass:
            decision = decision_of(error.url, error.decision)
            return ApiError(503, str(error), retry_after_s=error.retry_after_s, decision=decision)
        case Disallowed():
            return ApiError(403, str(error), decision=decision_of(error.url, error.decision))
        case OriginDeclined():
            return ApiError(403, str(error), option=error.option, limit=error.limit)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    text = f"url: {error}" if isinstance(error, InvalidURL) else str(error)
    return ApiError(status, text, retry_after_s=5.0 if status in (429, 503) else None)


# What is said of each status besides success.
_ERRORS = {
    400: "A field is missing, unknown or out of its limits: Error",
    401: "A token is needed: Error",
    403: "robots.txt disallows the URL, or the pacing policy permits no more requests there: Error",
    404: "There is no such permit of this client: Error",
    409: "It was reported already, or still waits: Error",
    410: "The permit has ended: Error",
    429: "Too much waits; with Retry-After: Error",
    501: "prometheus-client is missing: Error",
    502: "The site gave no answer that can be passed on: Error",
    503: "robots.txt is out of reach, or the server stops; with Retry-After: Error",
    504: "No answer came in time: Error",
}


def _or(success: dict[int, str], *errors: int) -> dict[int, str]:
    return success | {status: _ERRORS[status] for status in errors}


# Permits.

_URL = Field("url", "string", "The URL.", 1, 8_192, required=True)
_WAIT = Field("wait", "number", "Seconds to wait for the turn; then the answer is 202.", 0, _LONGEST_S, 30)
_GRANTED = {200: "The turn has come: Permit", 202: "It has not: Waiting"}


@operation(
    "POST",
    "/v1/permits",
    _URL,
    _WAIT,
    Field("headers", "object", "Header fields that you want to send; the answer has them.", 0, 100),
    Field("conditional", "boolean", "You have the page: send If-None-Match and its like.", default=False),
    responses=_or(_GRANTED, 400, 401, 403, 429, 503),
)
async def request_permit(services: Services, call: Call) -> web.StreamResponse:
    """Wait for the turn of a URL.

    If the turn has not come after `wait` seconds, ask again at `Location` within ten seconds, or the place is lost. Send the
    request once, as `url` and `headers` say, without following redirects: a redirect needs a permit of its own.
    """
    values, agent = call.values, services.gate.agent.header
    if values["conditional"] and services.gate.services.recrawl is None:
        raise ApiError(400, "conditional needs a server that remembers pages: polite serve --recrawl FILE")
    given = (values["headers"] or {}).items()
    headers = {name: value for name, value in given if (name.lower(), value) != ("user-agent", agent)}
    if any(name.lower() == "user-agent" for name in headers):
        raise ApiError(400, f"headers: User-Agent must be {agent!r}, whose rules are obeyed")
    held = services.permits.begin(call.client, values["url"], headers, conditional=values["conditional"])
    try:
        return await _answer(services, held, values["wait"])
    except BaseException:
        # The client knows no id yet: it went away, or was refused.
        services.permits.drop(held)
        raise


@operation("GET", "/v1/permits/{id}", _WAIT, responses=_or(_GRANTED, 400, 401, 403, 404, 410, 429, 503))
async def await_permit(services: Services, call: Call) -> web.StreamResponse:
    """Go on waiting for a permit, or return it again."""
    held = services.permits.find(call.client, call.id)
    if held.polls >= _MOST_POLLS:
        raise ApiError(429, f"{_MOST_POLLS} requests wait for this permit", retry_after_s=1.0)
    return await _answer(services, held, call.values["wait"])


async def _answer(services: Services, held: Held, wait_s: float) -> web.StreamResponse:
    permit, gate = held.permit, services.gate
    if not await services.permits.wait(held, wait_s):
        place = f"/v1/permits/{held.id}"
        return json_response({"id": held.id, "url": permit.url, "poll": place}, 202, Location=place)
    if not held.taken and (not permit.valid or gate.services.turns.stopped(permit.target)):
        # It was granted while nobody asked for it.
        services.permits.drop(held)
        gate.services.require_permitted(permit.target)
        raise ApiError(410, "its turn was lost before you asked for it: request a new permit")
    headers = {"User-Agent": gate.agent.header}
    if held.conditional:
        headers.update(await gate.conditional(permit.url))
    headers.update(held.headers)
    if gate.signs:
        headers.update(permit.sign("GET"))
    held.taken = True
    return json_response({"id": held.id, "url": permit.url, "deadline": held.deadline, "headers": headers})


@operation(
    "POST",
    "/v1/permits/{id}",
    Field("status", "integer", "The response's status; 0 if no response came.", 0, 999),
    Field("headers", "object", "The response's header fields: Retry-After, ETag and others count.", 0, 200),
    Field("refused", "string", "Why the response is a refusal, whatever its status was.", 1, 200),
    Field("octets", "integer", "Octets of the body that came, for budgets.", 0, 1 << 40),
    Field("end", "boolean", "Whether the permit ends.", default=True),
    responses=_or({200: "It was taken: Ended"}, 400, 401, 404, 409, 410),
)
async def report_permit(services: Services, call: Call) -> web.StreamResponse:
    """Report a response, and end its permit.

    Report as soon as the head is there: the delay starts then. With `end` false the permit goes on, and a second report without
    `status` ends it.
    """
    values, held = call.values, services.permits.find(call.client, call.id)
    status, permit = values["status"], held.permit
    if not held.taken:
        raise ApiError(409, "this permit still waits for its turn: nothing may be sent, or reported")
    if status is None and not held.reported:
        raise ApiError(400, "status is missing: what the site answered, or 0 if no response came")
    valid = permit.valid
    if status is not None:
        permit.report(status=status, headers=values["headers"])
        held.reported = True
    if values["octets"]:
        permit.received(values["octets"])
    if values["refused"]:
        permit.refused(values["refused"])
    if values["end"]:
        services.permits.drop(held)
    return json_response({"ended": values["end"], "valid": valid})


@operation("DELETE", "/v1/permits/{id}", responses=_or({204: "It is given back"}, 400, 401, 404, 409, 410))
async def return_permit(services: Services, call: Call) -> web.StreamResponse:
    """Give a permit back: nothing was sent, so no delay starts."""
    held = services.permits.find(call.client, call.id)
    if held.reported:
        raise ApiError(409, "a response was reported: end the permit by a report")
    services.permits.drop(held)
    return web.Response(status=204)


# Decisions.

_KNOWN = _or({200: "What is known: Any"}, 400, 401, 429, 503)


@asynccontextmanager
async def _counted(services: Services, call: Call, seconds: float | None = _LONGEST_S) -> AsyncIterator[None]:
    """Count a call that may wait, and limit its time."""
    services.permits.reserve(call.client)
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ApiError(503, "robots.txt did not come in time", retry_after_s=5.0) from None
    finally:
        services.permits.release(call.client)


@operation("GET", "/v1/check", _URL, responses=_KNOWN | {200: "The decision: Decision"})
async def check(services: Services, call: Call) -> web.StreamResponse:
    """Return whether robots.txt allows a URL. No turn is taken for the URL."""
    url = call.values["url"]
    async with _counted(services, call):
        return json_response(decision_of(url, await services.gate.check(url)))


@operation("GET", "/v1/explain", _URL, responses=_KNOWN)
async def explain(services: Services, call: Call) -> web.StreamResponse:
    """Return everything that decides about a URL now: rule, age of robots.txt, delay, next turn."""
    async with _counted(services, call):
        found = await services.gate.explain(call.values["url"])
    more = {"delay_s": found.pause.seconds, "wait_s": found.wait_s, "declined": found.declined}
    return json_response(decision_of(found.target.url, found.decision) | more | {"explanation": str(found)})


@operation("GET", "/v1/robots", _URL, responses=_KNOWN)
async def robots(services: Services, call: Call) -> web.StreamResponse:
    """Return the robots.txt that decides about a URL's site, as it was read, and its latest result."""
    async with _counted(services, call):
        snapshot = (await services.gate.explain(call.values["url"])).snapshot
    access = snapshot.access
    file = access if isinstance(access, Found) else snapshot.good
    text = file.body.decode("utf-8", "replace") if isinstance(file, Found) else None
    result = {"outcome": type(access).__name__.lower(), "reason": access.reason.name, "status": access.status}
    times = {"fetched_at": snapshot.fetched_at, "expires_at": snapshot.expires_at}
    return json_response({"url": access.url, **result, **times, "text": text})


@operation("GET", "/v1/usage", _URL, responses=_KNOWN)
async def usage_of(services: Services, call: Call) -> web.StreamResponse:
    """Return what a site's robots.txt says of the use of a page."""
    url = call.values["url"]
    async with _counted(services, call):
        found = usage((), await services.gate.robots(url), services.gate.agent, url)
    said = {name: getattr(found, name) for name in ("refused", "search", "ai_input", "ai_train")}
    lists = {
        name: [str(each) for each in getattr(found, name)[:1_000]] for name in ("statements", "licenses")
    }
    return json_response({"url": redact_url(url), **said, **lists})


# Streams.


async def _begin(call: Call, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={**JSON_HEADERS, "Content-Type": content_type})
    await response.prepare(call.request)
    return response


async def _write(call: Call, response: web.StreamResponse, text: str) -> None:
    """Write to a client, and cut one that does not read."""
    try:
        async with asyncio.timeout(_SLOW_S):
            await response.write(text.encode())
    except TimeoutError:
        call.cut()
        raise ConnectionResetError("the client does not read") from None


@operation(
    "GET",
    "/v1/sitemaps",
    Field("site", "string", "The site, or any URL of it.", 1, 8_192, required=True),
    Field("limit", "integer", "The most URLs.", 1, 50_000_000, 50_000),
    Field("files", "integer", "The most sitemaps to fetch.", 1, 50_000, 1_000),
    responses=_KNOWN | {200: "An object a line: application/x-ndjson"},
)
async def sitemaps(services: Services, call: Call) -> web.StreamResponse:
    """Stream the URLs that a site's sitemaps name, one JSON object a line.

    Each file is fetched in its turn. The last line says what became of the files.
    """
    policy, left = SitemapPolicy(max_files=call.values["files"]), call.values["limit"]
    async with _counted(services, call, None):
        found = services.gate.sitemaps(call.values["site"], policy=policy)
        async with aclosing(aiter(found)) as entries:
            # The first comes before the head, so that a refusal has its status.
            entry = await anext(entries, None)
            response = await _begin(call, "application/x-ndjson")
            while entry is not None:
                lastmod = None if entry.lastmod is None else entry.lastmod.isoformat()
                await _write(call, response, encode({"url": entry.url, "lastmod": lastmod}) + "\n")
                left -= 1
                entry = await anext(entries, None) if left else None
        told = [{"url": each.url, "entries": each.entries, "problem": each.problem} for each in found.files]
        await _write(call, response, encode({"files": told}) + "\n")
        return response


_EVENTS = frozenset(kind.__name__ for kind in get_args(Event))


@operation(
    "GET",
    "/v1/events",
    Field("kinds", "string", "Names of events, with commas; by default all.", 1, 1_000),
    responses=_or({200: "Events of polite.events: text/event-stream"}, 400, 401, 403, 429),
)
async def events(services: Services, call: Call) -> web.StreamResponse:
    """Stream the gate's events as server-sent events, from now on.

    A client that falls a thousand events behind is cut.
    """
    names = [name for name in (call.values["kinds"] or "").split(",") if name] or _EVENTS
    if unknown := [name for name in names if name not in _EVENTS]:
        raise ApiError(
            400, f"kinds: {unknown[0][:100]!r} is no event; there are {', '.join(sorted(_EVENTS))}"
        )
    if not services.may_look(call.client):
        raise ApiError(403, "events need the token named operator, or the only one: they tell what others do")
    if services.streams >= _MOST_STREAMS:
        raise ApiError(429, f"{_MOST_STREAMS} streams of events are open", retry_after_s=5.0)
    queue: asyncio.Queue[Any] = asyncio.Queue(_MOST_QUEUED)

    def listener(event: object, /) -> None:
        if queue.full():
            call.cut()
        elif type(event).__name__ in names:
            queue.put_nowait(event)

    services.streams += 1
    end = services.gate.listen(listener)
    try:
        response = await _begin(call, "text/event-stream")
        text = ": polite\n\n"
        while True:
            await _write(call, response, text)
            text = ": \n\n"
            with suppress(TimeoutError):
                event = await asyncio.wait_for(queue.get(), _QUIET_S)
                value = {each.name: getattr(event, each.name) for each in fields(event)}
                text = f"event: {type(event).__name__}\ndata: {encode(value)}\n\n"
    finally:
        end()
        services.streams -= 1


@operation(
    "GET",
    "/v1/fetch",
    _URL,
    Field("wait", "number", "How long to wait for turns and the answer (seconds).", 1, 3_600, 300),
    Field("redirects", "integer", "How many redirects to follow.", 0, 20, 5),
    responses=_or({200: "The site's answer, whatever its status is: */*"}, 400, 401, 403, 429, 502, 503, 504),
)
async def fetch(services: Services, call: Call) -> web.StreamResponse:
    """Fetch a URL politely, and stream the site's answer: status, headers and body are the site's.

    Redirects are followed, each in its turn; `Polite-Url` has the last URL. With `redirects` 0 the first is passed on as it is.
    Credentials in your request are not passed on.
    """
    async with _counted(services, call, None):
        return await services.relay.fetch(call)


# The server itself.


@operation("GET", "/metrics", responses=_or({200: "Metrics: text/plain"}, 400, 401, 501))
async def metrics(services: Services, call: Call) -> web.StreamResponse:
    """Return the gate's metrics for Prometheus."""
    if services.metrics is None:
        raise ApiError(501, "metrics need prometheus-client: pip install 'polite-crawl[prometheus]'")
    headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    return web.Response(body=services.metrics(), headers=headers)


# An operator's orders.


@operation("GET", "/v1/orders", responses=_or({200: "What stands: Any"}, 401))
async def orders(services: Services, call: Call) -> web.StreamResponse:
    """Return an operator's orders that stand."""
    return json_response({"orders": standing(services.gate)})


@operation(
    "POST",
    "/v1/orders",
    Field("action", "string", "hold, forbid, release, or drop.", 1, 20, required=True),
    Field("pattern", "string", "An origin, *.domain, or the start of URLs.", 1, 8_192, required=True),
    Field("because", "string", "Why.", 1, 1_000, required=True),
    Field("until", "number", "When a hold ends by itself (Unix time).", 0, 1 << 40),
    Field("for_s", "number", "For how long, instead (seconds).", 1, 1 << 30),
    Field("by", "string", "Who orders it, besides the name of the token.", 1, 500),
    responses=_or({200: "The orders that were given or ended: Any"}, 400, 401, 403, 429, 503),
)
async def give_order(services: Services, call: Call) -> web.StreamResponse:
    """Have requests wait (hold), or none go (forbid), or end that (release).

    It needs the token named operator, or the only one; at a socket file without tokens, none. `drop` is for a frontier, which
    `polite serve` has not.
    """
    if not services.may_order(call.client):
        raise ApiError(
            403,
            "orders need the server's token named operator, or the only one (polite serve: POLITE_SERVE_TOKEN, or --token-file); "
            "without tokens, they need --listen unix:PATH",
        )
    given = {name: value for name, value in call.values.items() if value is not None}
    return json_response(await act(services.gate, None, given, call.client or "socket"))


@operation("GET", "/openapi.json", responses={200: "An OpenAPI 3.1 document: Any"})
async def describe(services: Services, call: Call) -> web.StreamResponse:
    """Return this description."""
    return json_response(document(OPERATIONS))


@operation("GET", "/healthz", responses={200: "Permits are granted: Any", 503: "The server stops: Any"})
async def health(services: Services, call: Call) -> web.StreamResponse:
    """Return whether permits are granted."""
    gate, ok = services.gate, not services.permits.closing
    counts = {"waiting": gate.waiting, "out": gate.inside, "granted": gate.counters.granted}
    return json_response({"ok": ok, **counts}, 200 if ok else 503)


OPERATIONS = (
    *(request_permit, await_permit, report_permit, return_permit, check, explain, robots, usage_of, sitemaps),
    *(events, fetch, orders, give_order, metrics, describe, health),
)
# Paths that tell nothing of the crawl, and need no token.
OPEN = frozenset({describe.path, health.path})
