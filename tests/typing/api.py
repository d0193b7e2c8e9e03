"""Never run, only type-checked: every call that a user makes, and the types that it gives."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import assert_type

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

import polite
from polite.events import BackedOff, CircuitOpened, Event, Left, Refused, RobotsFetched
from polite.gate.tally import Counters
from polite.integrations.aiohttp import middleware
from polite.ports import (
    Clock,
    Listener,
    RobotsStore,
    Signer,
    Snapshot,
    Timer,
    Transport,
    Validators,
    ValidatorStore,
    merged,
)
from polite.robots.exchange import Ask, Failed, Reply
from polite.sitemaps import (
    Alternate,
    ChangeFrequency,
    SitemapEntry,
    SitemapFile,
    SitemapLink,
    SitemapParser,
    SitemapPolicy,
)
from polite.stores.codec import decode, encode
from polite.stores.memory import MemoryStore, MemoryValidators
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ManualClock, ScriptedTransport, VirtualTimeLoop
from polite.throttles import DelayThrottle, Longest, MinDelay, Outcome, Pause, Throttle, ThrottleContext

AGENT = polite.UserAgent(
    "ExampleBot-News/1.0 (+https://example.com/bot)", tokens=("examplebot-news", "examplebot")
)


def rules_without_io(body: bytes) -> None:
    robots = polite.parse(body)
    assert_type(polite.parse("User-agent: *", dialect=polite.RFC9309), polite.Robots)
    decision = robots.decide("ExampleBot/1.0", "https://example.com/a?b")
    assert_type((decision, robots.decide(AGENT, "/a?b")), tuple[polite.Decision, polite.Decision])
    assert_type((decision.allowed, decision.undefined, bool(decision)), tuple[bool, bool, bool])
    assert_type((decision.reason, decision.cause), tuple[polite.Reason, polite.Reason | None])
    assert_type(decision.overruled, tuple[polite.Rule, ...])
    if (rule := decision.rule) is not None:
        assert_type((rule.allows, rule.pattern, rule.line), tuple[bool, str, int])


def one_agent_many_urls(robots: polite.Robots) -> None:
    rules = robots.rules_for("ExampleBot/1.0")
    assert_type((rules.allows("/a?b"), rules.decide("/a?b")), tuple[bool, polite.Decision])
    assert_type((rules.crawl_delay, rules.group), tuple[float | None, str | None])
    assert_type((robots.sitemaps, robots.host), tuple[tuple[str, ...], str | None])
    assert_type(robots.extensions, Mapping[str, tuple[tuple[int, str], ...]])
    for group in robots.groups:
        assert_type((group.agents, group.rules), tuple[tuple[str, ...], tuple[polite.Rule, ...]])


def dialects() -> list[polite.Dialect]:
    own = replace(polite.RFC9309, name="own", supplies_slash=True)
    assert_type(own, polite.Dialect)
    assert_type(polite.dialect("google-2019"), polite.Dialect)
    return [own, polite.CLASSIC, polite.GOOGLE_2010, polite.GOOGLE_2019, polite.GOOGLE]


def findings(body: bytes) -> None:
    for finding in polite.lint(body, dialect=polite.CLASSIC):
        assert_type(finding, polite.Finding)
        assert_type((finding.line, finding.code, finding.message, finding.hint), tuple[int, str, str, str])


def origins(url: str) -> None:
    origin, target = polite.Origin.of(url), polite.Target.of(url)
    assert_type((origin.scheme, origin.host, origin.port), tuple[str, str, int | None])
    assert_type((target.path, target.url, origin.robots_url), tuple[str, str, str])
    assert_type((target.origin, target.join("../b")), tuple[polite.Origin, polite.Target])
    assert_type({origin: 1}, dict[polite.Origin, int])
    assert_type(polite.redact_url(url), str)


def by_site(target: polite.Target) -> tuple[Hashable, ...]:
    return (target.origin, target.origin.host.rpartition(".")[2])


def policies() -> None:
    # An option in seconds takes an integer too.
    polite.RobotsPolicy(dialect=polite.GOOGLE, denied_statuses=frozenset({401, 403}), default_ttl=3_600)
    polite.PacingPolicy(min_delay=2, max_crawl_delay=60.0, scopes=by_site, anchor=polite.Anchor.END)
    customers = polite.CustomScope("customer", lambda target: target.origin.host, polite.ScopeLimit(2.0))
    scopes = polite.Scopes(
        domain=polite.ScopeLimit(delay=2.0),
        address=polite.ScopeLimit(delay=0.5, concurrency=4),
        crawl=polite.ScopeLimit(delay=0.0, concurrency=100),
        custom=[customers],
    )
    polite.PacingPolicy(scopes=scopes)
    policy = polite.PacingPolicy().override("https://example.com", min_delay=5, concurrency=2)
    assert_type(policy, polite.PacingPolicy)
    assert_type(policy.at(polite.Origin.of("https://example.com")), polite.PacingPolicy)
    polite.FetchPolicy(timeout=10, allowed_networks=["10.0.0.0/8"], denied_networks=("10.0.99.0/24",))


async def with_aiohttp(gate: polite.Gate, url: str) -> None:
    async with polite.open_session("ExampleBot/1.0", pacing=polite.PacingPolicy(min_delay=2)) as session:
        assert_type(session, aiohttp.ClientSession)
        assert_type(polite.gate_of(session), polite.Gate)
    async with aiohttp.ClientSession(middlewares=[middleware(gate)]) as session, session.get(url) as response:
        assert_type(response, aiohttp.ClientResponse)


async def named_hosts(own: AbstractResolver) -> None:
    polite.open_gate("ExampleBot/1.0", resolver={"example.com": "10.0.0.7", "example.com:8443": "[::1]:443"})
    polite.open_gate("ExampleBot/1.0", resolver=own)
    polite.guarded_connector(resolver={"example.com": "10.0.0.7"})
    polite.guarded_connector(polite.FetchPolicy(), resolver=own, limit=10)


async def the_gate(url: str, headers: Mapping[str, str]) -> None:
    async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
        assert_type(gate, polite.Gate)
        assert_type(await gate.check(url), polite.Decision)
        async with gate.permit(url) as permit:
            assert_type((permit, permit.url, permit.request_url), tuple[polite.Permit, str, URL])
            permit.require()
            await permit.ready()
            sent: bool = permit.valid
            permit.report(status=200 if sent else 0, headers=headers)
        detached = await gate.acquire(url)
        assert_type((detached, detached.target), tuple[polite.Permit, polite.Target])
        asyncio.get_running_loop().call_soon(detached.leave)
        entered = await gate.permit(url).enter()
        assert_type(entered, polite.Permit)
        entered.began()
        entered.leave(OSError())
        gate.charge(url)
        assert_type((gate.waiting, gate.inside), tuple[int, int])
        entered.unsent()
        assert_type(gate.agent, polite.UserAgent)
        explanation = await gate.explain(url)
        assert_type((explanation.target, explanation.decision), tuple[polite.Target, polite.Decision])
        assert_type((explanation.snapshot, explanation.pause), tuple[Snapshot, Pause])
        assert_type((explanation.wait_s, explanation.held_s), tuple[float, float | None])
        gate.pacing = gate.pacing.override(url, min_delay=5)
        assert_type((gate.counters, gate.counters.granted), tuple[Counters, int])
        gate.listen(listen)()
        await gate.close()


async def a_status_page(gate: polite.Gate, frontier: polite.Frontier) -> None:
    async with polite.status.serve(gate, frontier, port=8080, names=["status.example.com"]) as page:
        assert_type((page, page.url, page.port), tuple[polite.status.StatusPage, str, int])
        await page.close()


async def refusals(gate: polite.Gate, url: str) -> None:
    try:
        async with gate.permit(url):
            pass
    except polite.RobotsUnreachable as refusal:
        assert_type(refusal.retry_after_s, float)
    except polite.Disallowed as refusal:
        assert_type(refusal.decision, polite.Decision)
    except polite.InvalidURL as error:
        assert_type((error.reason, error.position), tuple[str, int | None])
    except (polite.GateClosed, polite.PermitMisused, polite.Overloaded) as error:
        assert_type(error.url, str | None)
    except (polite.InvalidOption, polite.InvalidUserAgent) as error:
        value_error: ValueError = error
        raise value_error from None
    except polite.PoliteError as error:
        assert_type(error.url, str | None)


def listen(event: Event, /) -> None:
    match event:
        case RobotsFetched():
            assert_type((event.origin, event.outcome, event.status), tuple[str, str, int | None])
        case Left() | Refused():
            assert_type(event.url, str)
        case CircuitOpened() | BackedOff():
            assert_type((event.origin, event.because), tuple[str, str])


class Choosy:
    """A listener that names its events."""

    events = frozenset({Refused, Left})

    def __call__(self, event: Event, /) -> None: ...


class ArchiveTransport:
    """A scheme of the user's own: two methods, no base class."""

    async def get(self, ask: Ask) -> Reply | Failed:
        if ask.max_bytes == 0:
            return Failed(polite.Reason.DNS_NXDOMAIN, ask.target.url)
        return Reply(200, b"User-agent: *\n"[: ask.max_bytes], location=None, retry_after=None)

    async def close(self) -> None: ...


class OwnStore:
    """A store of the user's own."""

    async def load(self, origin: polite.Origin) -> Snapshot | None:
        return decode(b"")

    async def save(self, origin: polite.Origin, snapshot: Snapshot) -> None:
        assert_type(encode(merged(await self.load(origin), snapshot)), bytes)

    async def close(self) -> None: ...


class OwnValidators:
    """An archive of the user's own, which has the headers already."""

    async def validators(self, target: polite.Target) -> Validators:
        return Validators(etag='"1"', last_modified=None)

    def remember(self, target: polite.Target, validators: Validators) -> None: ...

    async def close(self) -> None: ...


async def fetch_again(gate: polite.Gate, frontier: polite.Frontier, url: str) -> None:
    pages: ValidatorStore = OwnValidators()
    recrawl = polite.RecrawlPolicy(
        min_interval=60, max_interval=3_600, default_interval=600, modified_share=0.2
    )
    async with polite.open_gate(AGENT, recrawl=recrawl, validators=pages):
        pass
    async with polite.open_gate(AGENT, recrawl=recrawl, validators=MemoryValidators(max_urls=10)):
        pass
    async with gate.permit(url) as permit:
        assert_type(await gate.conditional(permit.url), dict[str, str])
        permit.report(status=304)
        permit.unread()
    assert_type(permit.due, float)
    await frontier.put(url, again=True, not_before=permit.due)


class OwnThrottle:
    """A throttle of the user's own."""

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        requested = 0.0 if context.pace is None else context.pace.slowest_s or 0.0
        seconds = max(5.0, requested, 3.0 * (outcome.elapsed_s or 0.0))
        return Pause(seconds, "ours", strike=outcome.status == 429 or context.strikes > 3)


class OwnPart:
    """One reason of the user's own."""

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        return Pause(60.0, "forbidden") if outcome.status == 403 else None


class OwnClock:
    """A clock of the user's own."""

    def monotonic(self) -> float:
        return 0.0

    def wall(self) -> float:
        return 0.0

    def lasting(self) -> float:
        return 0.0

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_at(when, callback)


async def every_option() -> None:
    transport: Transport = ArchiveTransport()
    store: RobotsStore = OwnStore()
    throttle: Throttle = OwnThrottle()
    clock: Clock = OwnClock()
    listener: Listener = listen
    async with polite.open_gate(
        AGENT,
        robots=polite.RobotsPolicy(),
        pacing=polite.PacingPolicy(),
        fetching=polite.FetchPolicy(),
        store=store,
        throttle=throttle,
        listener=listener,
        clock=clock,
        transports={"archive": transport},
    ):
        pass
    async with polite.open_gate(AGENT, listener=Choosy(), throttle=Longest(MinDelay(1.0), OwnPart())):
        pass
    async with polite.open_gate(AGENT, store=SqliteStore("crawl.sqlite", on_failure="memory")):
        pass
    async with polite.open_gate(AGENT, store=MemoryStore(), throttle=DelayThrottle(min_delay=2.0)):
        pass


async def in_tests() -> None:
    site = ScriptedTransport({"https://example.com/robots.txt": [Failed(polite.Reason.TIMEOUT), Reply(404)]})
    manual: Clock = ManualClock()
    async with polite.open_gate("TestBot/1.0", transports={"https": site}, clock=LoopClock()):
        site.hold()
        site.let_go()
        site.answer("https://example.com/robots.txt", Reply(200))
        assert_type(site.asked, list[str])
    async with polite.open_gate("TestBot/1.0", clock=manual):
        pass


def in_virtual_time() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(in_tests())


def everything_else_about_rules(robots: polite.Robots, html: bytes) -> None:
    explained: polite.DecisionTrace = robots.explain("ExampleBot/1.0", "https://example.com/a?b")
    print(explained)
    signals: polite.Signals = robots.signals("ExampleBot/1.0", "/a")
    print(signals.search, signals.ai_input, signals.ai_train, signals.content_usage)
    bound: polite.SignalSet = robots.signals_for("ExampleBot/1.0")
    print(bound.at("/a"), robots.licenses, robots.licenses_for("x"), bound.at("/a").use, robots.clean_params)
    again: polite.Robots = polite.Robots.from_bytes(robots.to_bytes())
    print(again.to_text(), again.rules_for("ExampleBot/1.0").prepare())
    found: polite.Indexing = polite.indexing({"X-Robots-Tag": "noindex"}, html, agent="ExampleBot")
    print(found, found.ai, found.image_ai)
    file: polite.TdmFile = polite.parse_tdm_file(b"[]")
    rule: polite.TdmRule | None = file.at("/a")
    said: polite.Usage = polite.usage(
        {"Content-Usage": "train-ai=n"},
        robots,
        "ExampleBot/1.0",
        "https://example.com/a",
        html=html,
        tdm_file=file,
    )
    allowed: bool | None = said.allows("robot-poetry")
    statements: tuple[polite.UsageStatement, ...] = said.because("ai-train")
    sources: list[polite.UsageSource] = [each.source for each in said.statements]
    licenses: tuple[polite.License, ...] = said.licenses
    challenge: polite.LicenseChallenge | None = said.challenge
    print(rule, allowed, statements, sources, licenses, challenge and challenge.authorization("token"))
    refused: polite.Refusal = polite.refusal(403, {"cf-mitigated": "challenge"}, html)
    if refused and refused.kind is not polite.RefusalKind.PAYMENT:
        print(refused, refused.by or "unknown", refused.because)


async def what_a_gate_knows_of_uses(gate: polite.Gate, response: aiohttp.ClientResponse) -> None:
    robots: polite.Robots | None = await gate.robots("https://example.com/a")
    file: polite.TdmFile = await gate.tdm_file("https://example.com/a")
    print(polite.usage(response.headers, robots, gate.agent, str(response.url), tdm_file=file).ai_train)


async def a_frontier_that_lasts(gate: polite.Gate) -> None:
    async with polite.open_frontier(gate) as in_memory:
        assert_type(in_memory, polite.Frontier)
    async with polite.open_frontier(
        gate,
        store="queue.sqlite",
        scheduler=polite.schedulers.Ordered(lambda task: len(task.url), order="depth"),
        max_outage=600.0,
    ) as frontier:
        assert_type(await frontier.put("https://example.com/", payload={"a": [1, None]}), polite.Admission)
        frontier.stop()


def threads(url: str) -> None:
    with polite.blocking.open_gate(AGENT, pacing=polite.PacingPolicy(min_delay=2)) as gate:
        assert_type((gate.check(url), gate.explain(url)), tuple[polite.Decision, polite.Explanation])
        with gate.permit(url) as permit:
            assert_type((permit, permit.url, permit.valid), tuple[polite.blocking.Permit, str, bool])
            permit.require()
            permit.ready()
            permit.report(status=200, headers={"Retry-After": "1"})
            permit.unread()
        acquired = gate.acquire(url)
        acquired.unsent()
        acquired.leave(OSError())
        assert_type(gate.agent, polite.UserAgent)
        gate.pacing = gate.pacing.override(url, min_delay=5)
        gate.close()


async def sitemaps_of_a_site(gate: polite.Gate, frontier: polite.Frontier, since: datetime) -> None:
    sitemaps = gate.sitemaps("https://example.com", since=since, policy=SitemapPolicy(max_files=10))
    async for entry in sitemaps:
        assert_type((entry, entry.alternates), tuple[SitemapEntry, tuple[Alternate, ...]])
        assert_type((entry.lastmod, entry.priority), tuple[datetime | None, float | None])
        assert_type(entry.changefreq, ChangeFrequency | None)
    assert_type(sitemaps.files, list[SitemapFile])
    put = await frontier.put_sitemaps(polite.Origin.of("https://example.com"), since=since, depth=1)
    assert_type((put.waiting, put.admissions[polite.Admission.REFUSED]), tuple[int, int])


def a_sitemap_without_io(body: bytes) -> None:
    parser = SitemapParser("https://example.com/sitemap.xml")
    for found in parser.feed(body):
        assert_type(found, list[SitemapEntry | SitemapLink])
    assert_type(parser.close(), list[SitemapEntry | SitemapLink])
    assert_type(parser.problem, str | None)


async def a_frontier_of_a_host_framework(gate: polite.Gate) -> None:
    def ended(task: polite.Task, outcome: polite.TaskOutcome) -> None:
        assert_type(outcome.end, polite.End)
        assert_type(outcome.decision, polite.Decision | None)
        print(task.payload, outcome.because)

    frontier = polite.Frontier(gate, on_end=ended)
    future: asyncio.Future[polite.Admission] = frontier.put_nowait("https://example.com/", priority=1)
    assert_type(await future, polite.Admission)
    await frontier.until_waiting(100)
    permit: polite.TaskPermit | None = await frontier.next()
    print(permit)
    async with polite.open_frontier(gate, on_end=ended):
        pass


class OwnSigner:
    def sign(self, method: str, target: polite.Target, now: float) -> Mapping[str, str]:
        return {"Signature": f"{method} {target} {now}"}


async def who_sends_it() -> None:
    key = polite.SigningKey.read("key.pem")
    assert_type(key.thumbprint, str)
    assert_type(key.public_jwk, dict[str, str])
    signer: Signer = polite.WebBotAuth(
        key, "https://bot.example", lifetime=60, components=["@target-uri", "@method"]
    )
    signer = OwnSigner()
    async with polite.open_gate(AGENT, signer=signer) as gate, gate.permit("https://example.com/") as permit:
        assert_type((gate.signs, permit.sign("GET")), tuple[bool, dict[str, str]])
        assert_type(permit.sign("HEAD", "https://www.example.com/"), dict[str, str])
    async with polite.open_session(
        AGENT, signer=polite.WebBotAuth("key.pem", "https://bot.example"), journal="journal"
    ):
        pass
