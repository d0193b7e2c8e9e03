"""The operations of the API: permits, decisions, and what a gate knows of a site."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, get_args

from aiohttp import web

from polite.errors import (
    GateClosed,
    InvalidOption,
    InvalidURL,
    OriginDeclined,
    Overloaded,
    PoliteError,
    StoreFailed,
    TurnLost,
    redact_url,
)
from polite.events import Event
from polite.gate.gate import Gate
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable
from polite.robots.result import Found, Unavailable
from polite.serve.api import ApiError, Call, Field, Operation, encode, json_response, unavailable
from polite.serve.fetching import Relay
from polite.serve.permits import Held, Permits
from polite.sitemaps.entry import SitemapPolicy
from polite.terms.usage import usage

# Requests that may wait for one permit: a client whose connection broke asks again.
_MOST_POLLS = 4
# Streams of events, and events that wait for one slow client.
_MOST_STREAMS, _MOST_QUEUED = 32, 1_000
# Seconds after which a quiet stream says that it is there, and in which a client must read.
_QUIET_S, _SLOW_S = 15.0, 10.0
_LONGEST_WAIT_S = 60.0


@dataclass(slots=True)
class Services:
    """What operations need.

    Attributes:
        gate: The gate.
        permits: The permits of all clients.
        relay: Fetches for clients.
        metrics: Returns the metrics as text; None without prometheus-client.
        document: Returns the description of the API.
        streams: How many streams of events are open.
    """

    gate: Gate
    permits: Permits
    relay: Relay
    metrics: Callable[[], bytes] | None
    document: Callable[[], object]
    streams: int = 0


def decision_of(url: str, decision: Decision) -> dict[str, object]:
    """Return a decision as JSON has it."""
    rule = decision.rule
    return {
        "url": redact_url(url),
        "allowed": decision.allowed,
        "reason": decision.reason.name,
        "cause": None if decision.cause is None else decision.cause.name,
        "rule": None
        if rule is None
        else f"{'Allow' if rule.allows else 'Disallow'}: {redact_url(rule.pattern)}",
        "line": None if rule is None else rule.line,
        "text": str(decision),
    }


def refusal_of(error: PoliteError) -> ApiError:
    """Return the answer that says why the gate refused."""
    match error:
        case RobotsUnreachable() if error.decision.cause is None or error.decision.cause.may_pass:
            decision = decision_of(error.url, error.decision)
            return unavailable(str(error), error.retry_after_s, decision=decision)
        case Disallowed():
            return ApiError(403, str(error), decision=decision_of(error.url, error.decision))
        case OriginDeclined():
            return ApiError(403, str(error), option=error.option, limit=error.limit)
        case InvalidURL():
            return ApiError(400, f"url: {error}")
        case Overloaded():
            return unavailable(str(error), 1.0, 429)
        case TurnLost():
            return ApiError(410, str(error))
        case GateClosed() | StoreFailed():
            return unavailable(str(error), 5.0)
        case InvalidOption():
            return ApiError(400, str(error))
        case _:
            return ApiError(500, str(error))


# Permits.

_URL = Field("url", "string", "The URL.", 1, 8_192, required=True)
_WAIT = Field(
    "wait",
    "number",
    "How long to wait for the turn (seconds); then the answer is 202.",
    most=_LONGEST_WAIT_S,
    default=30.0,
)
_REFUSALS = {
    400: "A field is missing, unknown or out of its limits: Error",
    401: "A token is needed: Error",
    403: "robots.txt disallows the URL, or the pacing policy permits no more requests there: Error",
    410: "The permit has ended: Error",
    429: "Too much waits; with Retry-After: Error",
    503: "robots.txt is out of reach, or the server stops; with Retry-After: Error",
}
_UNKNOWN = {404: "There is no such permit of this client: Error"}


async def request_permit(services: Services, call: Call) -> web.StreamResponse:
    """Wait for the turn of a URL.

    If the turn has not come after `wait` seconds, ask again at `Location` within ten seconds, or the place is lost. Send the
    request once, as `url` and `headers` say, without following redirects: a redirect needs a permit of its own.
    """
    values = call.values
    if values["conditional"] and services.gate.services.recrawl is None:
        raise ApiError(400, "conditional needs a server that remembers pages: polite serve --recrawl FILE")
    headers = values["headers"] or []
    if any(name.lower() == "user-agent" and value != services.gate.agent.header for name, value in headers):
        raise ApiError(
            400, f"headers: User-Agent must be {services.gate.agent.header!r}, whose rules are obeyed"
        )
    held = services.permits.begin(call.client, values["url"], headers, conditional=values["conditional"])
    try:
        return await _answer(services, held, values["wait"])
    except BaseException:
        # The client knows no id yet: it went away, or was refused.
        services.permits.drop(held)
        raise


async def await_permit(services: Services, call: Call) -> web.StreamResponse:
    """Go on waiting for a permit, or return it again."""
    held = services.permits.find(call.client, call.id)
    if held.polls >= _MOST_POLLS:
        raise unavailable(f"{_MOST_POLLS} requests wait for this permit", 1.0, 429)
    return await _answer(services, held, call.values["wait"])


async def _answer(services: Services, held: Held, wait_s: float) -> web.StreamResponse:
    permit = held.permit
    if not await services.permits.wait(held, wait_s):
        place = f"/v1/permits/{held.id}"
        value = {"id": held.id, "url": permit.url, "poll": place}
        return json_response(value, 202, {"Location": place})
    headers = {"User-Agent": services.gate.agent.header}
    if held.conditional:
        headers.update(await services.gate.conditional(permit.url))
    headers.update(held.headers)
    if services.gate.signs:
        headers.update(permit.sign("GET"))
    held.taken = True
    return json_response({"id": held.id, "url": permit.url, "deadline": held.deadline, "headers": headers})


async def report_permit(services: Services, call: Call) -> web.StreamResponse:
    """Report a response, and end its permit.

    Report as soon as the head is there: the delay starts then. With `end` false the permit goes on, and a second report without
    `status` ends it.
    """
    values, held = call.values, services.permits.find(call.client, call.id)
    status, permit = values["status"], held.permit
    if not held.taken:
        raise ApiError(409, "this permit still waits for its turn: nothing may be sent, or reported")
    if status is not None and held.reported:
        raise ApiError(409, "this permit was reported already: one permit is one request")
    if status is None and not held.reported:
        raise ApiError(400, "status is missing: what the site answered, or 0 if no response came")
    valid = permit.valid
    if status is not None:
        permit.report(status=status, headers=values["headers"] or ())
        held.reported = True
    if values["octets"]:
        permit.received(values["octets"])
    if values["refused"]:
        permit.refused(values["refused"])
    if values["end"]:
        services.permits.drop(held)
    return json_response({"ended": values["end"], "valid": valid})


async def return_permit(services: Services, call: Call) -> web.StreamResponse:
    """Give a permit back: nothing was sent, so no delay starts."""
    held = services.permits.find(call.client, call.id)
    if held.reported:
        raise ApiError(409, "a response was reported: end the permit by a report")
    services.permits.drop(held)
    return web.Response(status=204)


# Decisions.


@asynccontextmanager
async def _counted(services: Services, call: Call, wait_s: float = _LONGEST_WAIT_S) -> AsyncIterator[None]:
    """Count a call that may wait for a robots.txt, and limit its time."""
    services.permits.reserve(call.client)
    try:
        async with asyncio.timeout(wait_s):
            yield
    except TimeoutError:
        raise unavailable(f"robots.txt did not come within {wait_s:g} s", 5.0) from None
    finally:
        services.permits.release(call.client)


async def check(services: Services, call: Call) -> web.StreamResponse:
    """Return whether robots.txt allows a URL. No turn is taken for the URL."""
    url = call.values["url"]
    async with _counted(services, call):
        return json_response(decision_of(url, await services.gate.check(url)))


async def explain(services: Services, call: Call) -> web.StreamResponse:
    """Return everything that decides about a URL now: rule, age of robots.txt, delay, next turn."""
    async with _counted(services, call):
        found = await services.gate.explain(call.values["url"])
    pause, outlook = found.pause, found.outlook
    return json_response(
        {
            **decision_of(found.target.url, found.decision),
            "delay_s": pause.seconds,
            "delay_because": str(pause.because),
            "wait_s": found.wait_s,
            "wait_because": None if outlook.scope is None else str(outlook.because),
            "declined": found.declined,
            "explanation": str(found),
        }
    )


async def robots(services: Services, call: Call) -> web.StreamResponse:
    """Return the robots.txt that decides about a URL's site, as it was read."""
    async with _counted(services, call):
        snapshot = (await services.gate.explain(call.values["url"])).snapshot
        read = await services.gate.robots(call.values["url"])
    access = snapshot.access
    file = access if isinstance(access, Found) else snapshot.good
    outcome = (
        "found"
        if isinstance(access, Found)
        else "unavailable"
        if isinstance(access, Unavailable)
        else "unreachable"
    )
    return json_response(
        {
            "url": access.url,
            "outcome": outcome,
            "reason": access.reason.name,
            "status": access.status,
            "fetched_at": snapshot.fetched_at,
            "expires_at": snapshot.expires_at,
            "sitemaps": [] if read is None else read.sitemaps,
            "text": file.body.decode("utf-8", "replace") if isinstance(file, Found) else None,
        }
    )


async def usage_of(services: Services, call: Call) -> web.StreamResponse:
    """Return what a site's robots.txt says of the use of a page."""
    url = call.values["url"]
    async with _counted(services, call):
        found = usage((), await services.gate.robots(url), services.gate.agent, url)
    return json_response(
        {
            "url": redact_url(url),
            "refused": found.refused,
            "search": found.search,
            "ai_input": found.ai_input,
            "ai_train": found.ai_train,
            "statements": [str(each) for each in islice(found.statements, 1_000)],
            "licenses": [str(each) for each in found.licenses],
        }
    )


# Streams.


async def _begin(call: Call, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
    )
    await response.prepare(call.request)
    return response


async def _write(call: Call, response: web.StreamResponse, text: str) -> None:
    """Write to a client, and cut one that does not read."""
    try:
        async with asyncio.timeout(_SLOW_S):
            await response.write(text.encode())
    except TimeoutError:
        if call.request.transport is not None:
            call.request.transport.abort()
        raise ConnectionResetError("the client does not read") from None


async def sitemaps(services: Services, call: Call) -> web.StreamResponse:
    """Stream the URLs that a site's sitemaps name, one JSON object a line.

    Each file is fetched in its turn. The last line says what became of the files.
    """
    services.permits.reserve(call.client)
    try:
        policy = SitemapPolicy(max_files=call.values["files"])
        found = services.gate.sitemaps(call.values["site"], policy=policy)
        left = call.values["limit"]
        async with aclosing(aiter(found)) as entries:
            # The first comes before the head, so that a refusal has its status.
            entry = await anext(entries, None)
            response = await _begin(call, "application/x-ndjson")
            while entry is not None and left > 0:
                lastmod = None if entry.lastmod is None else entry.lastmod.isoformat()
                await _write(call, response, encode({"url": entry.url, "lastmod": lastmod}) + "\n")
                left -= 1
                entry = await anext(entries, None) if left else None
        told = [{"url": each.url, "entries": each.entries, "problem": each.problem} for each in found.files]
        await _write(call, response, encode({"files": told}) + "\n")
        return response
    finally:
        services.permits.release(call.client)


_EVENTS = {kind.__name__: kind for kind in get_args(Event)}


class _Listener:
    """Queues events for one client, and cuts a client that does not read them."""

    def __init__(self, kinds: Mapping[str, Any], cut: Callable[[], None]) -> None:
        self.events = frozenset(kinds.values())
        self.queue: asyncio.Queue[object] = asyncio.Queue(_MOST_QUEUED)
        self._cut = cut

    def __call__(self, event: object, /) -> None:
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            self._cut()


async def events(services: Services, call: Call) -> web.StreamResponse:
    """Stream the gate's events as server-sent events, from now on.

    A client that falls a thousand events behind is cut.
    """
    names = [name for name in (call.values["kinds"] or "").split(",") if name] or list(_EVENTS)
    if unknown := [name for name in names if name not in _EVENTS]:
        raise ApiError(400, f"kinds: {unknown[0][:100]!r} is no event; there are {', '.join(_EVENTS)}")
    if services.streams >= _MOST_STREAMS:
        raise unavailable(f"{_MOST_STREAMS} streams of events are open", 5.0, 429)
    transport = call.request.transport
    listener = _Listener(
        {name: _EVENTS[name] for name in names}, lambda: None if transport is None else transport.abort()
    )
    services.streams += 1
    end = services.gate.listen(listener)
    try:
        response = await _begin(call, "text/event-stream")
        await _write(call, response, ": polite\n\n")
        while True:
            event: Any = None
            with suppress(TimeoutError):
                event = await asyncio.wait_for(listener.queue.get(), _QUIET_S)
            if event is None:
                await _write(call, response, ": \n\n")
                continue
            value = {each.name: _plain(getattr(event, each.name)) for each in fields(event)}
            await _write(call, response, f"event: {type(event).__name__}\ndata: {encode(value)}\n\n")
    finally:
        end()
        services.streams -= 1


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


async def fetch(services: Services, call: Call) -> web.StreamResponse:
    """Fetch a URL politely, and stream the site's answer: status, headers and body are the site's.

    Redirects are followed, each in its turn; `Polite-Url` has the last URL. With `redirects` 0 the first is passed on as it is.
    Credentials in your request are not passed on.
    """
    services.permits.reserve(call.client)
    try:
        return await services.relay.fetch(call)
    finally:
        services.permits.release(call.client)


# The server itself.


async def metrics(services: Services, call: Call) -> web.StreamResponse:
    """Return the gate's metrics for Prometheus."""
    if services.metrics is None:
        raise ApiError(501, "metrics need prometheus-client: pip install 'polite-crawl[prometheus]'")
    return web.Response(
        body=services.metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )


async def describe(services: Services, call: Call) -> web.StreamResponse:
    """Return this description."""
    return json_response(services.document())


async def health(services: Services, call: Call) -> web.StreamResponse:
    """Return whether permits are granted."""
    gate, ok = services.gate, not services.permits.closing
    return json_response(
        {"ok": ok, "waiting": gate.waiting, "out": gate.inside, "granted": gate.counters.granted},
        200 if ok else 503,
    )


_HEADERS_SENT = Field(
    "headers", "object", "Header fields that you want to send; the answer has them.", most=100
)
_REPORT = (
    Field("status", "integer", "The response's status; 0 if no response came.", 0, 999),
    Field("headers", "object", "The response's header fields: Retry-After, ETag and others count.", most=200),
    Field("refused", "string", "Why the response is a refusal, whatever its status was.", 1, 200),
    Field("octets", "integer", "Octets of the body that came, for budgets.", 0, 1 << 40),
    Field("end", "boolean", "Whether the permit ends.", default=True),
)
_CONDITIONAL = Field(
    "conditional",
    "boolean",
    "Whether `headers` shall make the request conditional: you have the page.",
    default=False,
)
_FETCH_QUERY = (
    _URL,
    Field("wait", "number", "How long to wait for turns and answers (seconds).", 1, 3_600, default=300.0),
    Field("redirects", "integer", "How many redirects to follow.", 0, 20, default=5),
)
_KNOWN = {200: "What is known: Any", **{each: _REFUSALS[each] for each in (400, 401, 429, 503)}}
OPERATIONS = (
    Operation(
        "POST",
        "/v1/permits",
        request_permit,
        {200: "The turn has come: Permit", 202: "It has not: Waiting", **_REFUSALS},
        body=(_URL, _WAIT, _HEADERS_SENT, _CONDITIONAL),
    ),
    Operation(
        "GET",
        "/v1/permits/{id}",
        await_permit,
        {200: "The turn has come: Permit", 202: "It has not: Waiting", **_REFUSALS, **_UNKNOWN},
        query=(_WAIT,),
    ),
    Operation(
        "POST",
        "/v1/permits/{id}",
        report_permit,
        {
            200: "It was taken: Ended",
            **{each: _REFUSALS[each] for each in (400, 401, 410)},
            **_UNKNOWN,
            409: "It was reported already, or still waits: Error",
        },
        body=_REPORT,
    ),
    Operation(
        "DELETE",
        "/v1/permits/{id}",
        return_permit,
        {
            204: "It is given back",
            401: _REFUSALS[401],
            410: _REFUSALS[410],
            **_UNKNOWN,
            409: "It was reported already: Error",
        },
    ),
    Operation("GET", "/v1/check", check, {**_KNOWN, 200: "The decision: Decision"}, query=(_URL,)),
    Operation("GET", "/v1/explain", explain, _KNOWN, query=(_URL,)),
    Operation("GET", "/v1/robots", robots, _KNOWN, query=(_URL,)),
    Operation("GET", "/v1/usage", usage_of, _KNOWN, query=(_URL,)),
    Operation(
        "GET",
        "/v1/sitemaps",
        sitemaps,
        {**_KNOWN, 200: "An object a line: application/x-ndjson"},
        query=(
            Field("site", "string", "The site, or any URL of it.", 1, 8_192, required=True),
            Field("limit", "integer", "The most URLs.", 1, 50_000_000, default=50_000),
            Field("files", "integer", "The most sitemaps to fetch.", 1, 50_000, default=1_000),
        ),
    ),
    Operation(
        "GET",
        "/v1/fetch",
        fetch,
        {
            200: "The site's answer, whatever its status is: */*",
            **{each: _REFUSALS[each] for each in (400, 401, 403, 429, 503)},
            502: "The site gave no answer that can be passed on: Error",
            504: "It did not come in time: Error",
        },
        query=_FETCH_QUERY,
    ),
    Operation(
        "GET",
        "/v1/events",
        events,
        {
            200: "Events of polite.events: text/event-stream",
            **{each: _REFUSALS[each] for each in (400, 401, 429)},
        },
        query=(Field("kinds", "string", "Names of events, with commas; by default all.", 1, 1_000),),
    ),
    Operation(
        "GET",
        "/metrics",
        metrics,
        {200: "Metrics: text/plain", 401: _REFUSALS[401], 501: "prometheus-client is missing: Error"},
    ),
    Operation("GET", "/openapi.json", describe, {200: "An OpenAPI 3.1 document: Any"}),
    Operation("GET", "/healthz", health, {200: "Permits are granted: Any", 503: "The server stops: Any"}),
)
# Paths that tell nothing of the crawl, and need no token.
OPEN = frozenset({"/openapi.json", "/healthz"})
