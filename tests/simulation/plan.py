"""The plan of a simulated world, drawn from its seed: sites, policies, frontiers and timed steps, as plain values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.policy import RobotsPolicy

# The first part of each page's path. A robots.txt disallows some folders, or "*" for all.
FOLDERS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class RobotsResponse:
    """A site's response to requests for robots.txt until a given time.

    Attributes:
        until: world seconds.
        kind: "found", "missing" (404), "error" (500), "busy" (503), "refused" (429), "redirect", "loop" (endless redirects),
            "silent" (no response before the timeout) or "broken" (the connection fails).
        disallowed: folders, or "*" for all.
        rate: requests and seconds of Request-rate.
        hours: begin and end of Visit-time, as HHMM.
        padding: octets of comment in the file.
    """

    until: float
    kind: str
    disallowed: frozenset[str] = frozenset()
    crawl_delay: float | None = None
    rate: tuple[int, int] | None = None
    hours: tuple[int, int] | None = None
    cache_control: str | None = None
    retry_after: int | None = None
    padding: int = 0

    @property
    def delay_s(self) -> float:
        rate = 0.0 if self.rate is None else self.rate[1] / self.rate[0]
        return max(self.crawl_delay or 0.0, rate)

    def max_age(self, default: float) -> float:
        return default if self.cache_control is None else float(self.cache_control.partition("=")[2] or 0)

    @property
    def text(self) -> bytes:
        lines = [
            "User-agent: *",
            *(f"Disallow: /{'' if each == '*' else each}" for each in sorted(self.disallowed)),
        ]
        if self.crawl_delay is not None:
            lines.append(f"Crawl-delay: {self.crawl_delay:g}")
        if self.rate is not None:
            lines.append(f"Request-rate: {self.rate[0]}/{self.rate[1]}")
        if self.hours is not None:
            lines.append(f"Visit-time: {self.hours[0]:04}-{self.hours[1]:04}")
        lines.append("#" + "x" * self.padding)
        return "\n".join(lines).encode()


@dataclass(frozen=True, slots=True)
class Site:
    """One origin.

    Attributes:
        robots: responses for robots.txt, ordered by `until`.
        latency_s: seconds until a response.
        trouble: the share of pages that may not respond with 200.
    """

    host: str
    robots: tuple[RobotsResponse, ...]
    latency_s: float = 0.1
    trouble: float = 0.0

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def robots_at(self, now: float) -> RobotsResponse:
        return next((each for each in self.robots if now < each.until), self.robots[-1])


@dataclass(frozen=True, slots=True)
class FrontierPlan:
    kept: bool
    workers: int
    scheduler: str
    max_waiting: int
    max_tries: int
    max_robots_tries: int
    max_robots_fetches: int
    max_active_origins: int
    ending: str


@dataclass(frozen=True, slots=True)
class Step:
    """One action of the crawler.

    Attributes:
        at: when it begins (world seconds).
        kind: "put", "permit", "check", "explain", "hold", "pacing", "wall", "pause", "cancel" or "worker".
        sites: indices into `Plan.sites`, one per URL.
        frontier: an index into `Plan.frontiers`.
        number: the position among the plan's steps. The step's random values depend on it.
        options: further values, which depend on the kind.
    """

    at: float
    kind: str
    sites: tuple[int, ...] = ()
    frontier: int = 0
    number: int = 0
    options: tuple[tuple[str, float], ...] = ()

    def option(self, name: str, default: float = 0.0) -> float:
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class Plan:
    """One world.

    Attributes:
        span: the time within which all steps begin (seconds).
        store: the robots.txt store: "none", "memory" or "file".
        kills: world times at which the process is killed and restarted.
        thread_s: durations of a job in a thread (seconds). Each job draws one.
        faults: names of injected faults; see faults.py.
        connections: the limit of concurrent robots.txt fetches.
        connect_s: the longest time until the connection of a robots.txt fetch is there (seconds).
    """

    seed: int
    sites: tuple[Site, ...]
    frontiers: tuple[FrontierPlan, ...]
    steps: tuple[Step, ...]
    pacing: PacingPolicy
    robots: RobotsPolicy
    span: float
    store: str = "none"
    kills: tuple[float, ...] = ()
    thread_s: tuple[float, ...] = (0.0,)
    faults: frozenset[str] = field(default_factory=frozenset)
    connections: int = 100
    connect_s: float = 0.0

    def hop(self, site: Site, hop: int) -> Site:
        """Return the target of a redirect of a site's robots.txt: the site itself, or another one that never changes."""
        return site if hop % 2 else self.sites[(len(site.host) + hop) % len(self.sites)]

    def redirect_sites(self, site: Site) -> tuple[Site, ...]:
        if not any(each.kind in {"redirect", "loop"} for each in site.robots):
            return ()
        return tuple(self.hop(site, hop) for hop in range(0, 6, 2))

    @property
    def slack_s(self) -> float:
        """The longest time that threads take for one response: jobs queued before it, parsing it, and storing it."""
        return 4.0 * max(self.thread_s) * (1 + len(self.sites)) + 0.001


def has_concurrency(plan: Plan) -> bool:
    """Return whether a scope may have more than one request in flight at some time."""
    crawl = plan.pacing.scopes.crawl if isinstance(plan.pacing.scopes, Scopes) else None
    crawl_limit = 1 if crawl is None else crawl.concurrency
    changed = max((step.option("concurrency") for step in plan.steps), default=1)
    return max(plan.pacing.concurrency, crawl_limit, changed) > 1


def origin_of(url: str) -> str:
    scheme, _, host, *_ = url.split("/")
    return f"{scheme}//{host}"


def folder_of(url: str) -> str:
    return url.split("/")[3]


_KINDS = (
    *("found",) * 6, "missing", "missing", "error", "busy", "refused", "redirect", "loop", "silent", "broken"
)  # fmt: skip
_AGES = (
    None, None, None, "no-cache", "max-age=0", "max-age=5", "max-age=60", "max-age=3600", "no-store", "max-age=99999999"
)  # fmt: skip
_WEIGHTS = {
    "put": 12, "permit": 6, "check": 2, "explain": 1, "hold": 1, "pacing": 3, "wall": 1, "pause": 1, "cancel": 1, "worker": 1,
}  # fmt: skip


def draw(seed: int) -> Plan:
    chance = Random(seed)
    span = chance.choice([3.0, 30.0, 300.0, 3_000.0, 30_000.0])
    sites = tuple(_site(chance, number, span) for number in range(_some(chance, 40)))
    frontiers = tuple(_frontier(chance, len(sites)) for _ in range(chance.choice([0, 1, 1, 1, 1, 2])))
    troubled = any(site.trouble for site in sites)
    thread = chance.choice([0.0, 0.001, 0.02, 0.02, 0.5, 5.0])
    steps = _steps(chance, sites, frontiers, span)
    pacing = _pacing(chance, span)
    connections, connect_s = _connections(Random(f"{seed} wide"), pacing)
    plan = Plan(
        seed, sites, frontiers, steps, pacing, _robots_policy(chance, len(sites)), span,
        store=chance.choice(["none", "none", "memory", "file"]),
        kills=_kills(chance, span, frontiers),
        thread_s=(0.0, thread / 3, thread),
        faults=_faults(chance, troubled=troubled),
        connections=connections,
        connect_s=connect_s,
    )  # fmt: skip
    crowding, replacing = Random(f"{seed} crowd"), Random(f"{seed} replace")
    plan = _crowded(crowding, plan) if crowding.random() < 0.03 else plan
    return _replaced(replacing, plan) if replacing.random() < 0.04 else plan


def _crowded(chance: Random, plan: Plan) -> Plan:
    """Have many sites requested at one time, in one scope that is open to several, on connections that take their time.

    Without that, few requests are between their turn and their connection at the time of another one's.
    """
    numbers = range(len(plan.sites), len(plan.sites) + 8)
    sites = (*plan.sites, *(_site(chance, number, plan.span) for number in numbers))
    at = chance.uniform(0, plan.span)
    burst = [
        Step(at, chance.choice(["check", "permit"]), (site,), number=len(plan.steps) + site)
        for site in range(len(sites))
    ]
    crawl = ScopeLimit(chance.choice([0.1, 1.0, 5.0]), chance.choice([2, 3, 5]))
    return replace(
        plan,
        sites=sites,
        steps=tuple(sorted((*plan.steps, *burst), key=lambda step: step.at)),
        pacing=replace(plan.pacing, scopes=Scopes(crawl=crawl)),
        connections=chance.choice([1, 2, 3, 100]),
        connect_s=chance.choice([0.05, 1.0, 8.0]),
    )


def _replaced(chance: Random, plan: Plan) -> Plan:
    """Have rules replaced and forgotten while tasks wait for their turns: files change often, and few of them are remembered.

    Others request the sites, so the gate learns rules that a queue has not seen, and evicts them before the queue's next turn.
    """
    span = chance.choice([30.0, 300.0])
    hosts = range(chance.choice([2, 3, 4]))
    times = [sorted(chance.uniform(0, span) for _ in range(4)) for _ in hosts]
    # Of files that disallow something, one in force after another differs more often than not.

    def file(until: float) -> RobotsResponse:
        disallowed = frozenset(chance.choice([("a",), ("b",), ("b", "c"), ("a", "c")]))
        age = chance.choice(["max-age=5", "max-age=0", "no-cache"])
        return RobotsResponse(until, "found", disallowed, cache_control=age)

    sites = tuple(
        Site(f"h{host}.example", tuple(map(file, (*times[host], math.inf))), chance.choice([0.0, 0.01, 0.1]))
        for host in hosts
    )
    frontier = replace(
        plan.frontiers[0] if plan.frontiers else _frontier(chance, len(sites)),
        max_active_origins=10_000,
        max_waiting=1_000_000,
    )
    puts = [
        Step(chance.uniform(0, span / 4), "put", tuple(chance.choice(hosts) for _ in range(20)), number=each)
        for each in range(2)
    ]
    checks = [
        Step(
            chance.uniform(0, span),
            chance.choice(["check", "permit"]),
            (chance.choice(hosts),),
            number=number,
        )
        for number in range(2, 30)
    ]
    return replace(
        plan,
        sites=sites,
        frontiers=(frontier,),
        steps=tuple(sorted((*puts, *checks), key=lambda step: step.at)),
        pacing=PacingPolicy(min_delay=span / chance.choice([10, 30])),
        robots=RobotsPolicy(min_ttl=chance.choice([0.0, 5.0]), max_origins=chance.choice([1, 2])),
        span=span,
        kills=(),
        faults=frozenset(),
        connections=100,
        connect_s=0.0,
    )


def _some(chance: Random, limit: int) -> int:
    """Return a number from 1 to `limit`, usually a small one."""
    return min(limit, 1 + int(chance.expovariate(1 / chance.choice([1.0, 3.0, 10.0]))))


def _site(chance: Random, number: int, span: float) -> Site:
    responses = [
        _robots_response(chance, chance.uniform(0, span)) for _ in range(chance.choice([1, 1, 1, 2, 3]))
    ]
    responses.sort(key=lambda each: each.until)
    # The last response succeeds. Otherwise the duration of a crawl would have no bound.
    last = _robots_response(chance, math.inf, succeeds=True)
    latency = chance.choice([0.0, 0.01, 0.1, 1.0])
    all_responses = (*responses, last) if len(responses) > 1 else (last,)
    return Site(f"h{number}.example", all_responses, latency, chance.choice([0, 0, 0.3]))


def _robots_response(chance: Random, until: float, *, succeeds: bool = False) -> RobotsResponse:
    kind = chance.choice(("found", "found", "found", "missing", "redirect") if succeeds else _KINDS)
    plain = chance.random() < 0.5
    disallowed = chance.choice([(), (), ("a",), ("b", "c"), ("a", "b")])
    if chance.random() < 0.08:
        disallowed = ("*",)
    retry_after = chance.choice([1, 7, 60, 3600, 86_000]) if chance.random() < 0.15 else None
    return RobotsResponse(
        until,
        kind,
        frozenset(disallowed),
        None if plain else chance.choice([None, 0.5, 2, 10, 30, 300, 1000, 1e9]),
        None if plain or chance.random() < 0.8 else chance.choice([(1, 5), (10, 60), (1, 300), (1, 86_400)]),
        None if plain or chance.random() < 0.9 else chance.choice([(0, 1200), (1300, 1800), (2200, 600)]),
        chance.choice(_AGES),
        retry_after,
        30_000 if chance.random() < 0.05 else 0,
    )


def _frontier(chance: Random, sites: int) -> FrontierPlan:
    few = chance.random() < 0.5
    return FrontierPlan(
        kept=chance.random() < 0.6,
        workers=chance.choice([1, 1, 2, 3, 8]),
        scheduler=chance.choice(["Fifo", "Priority", "BreadthFirst", "Deadline", "RoundRobin"]),
        max_waiting=chance.choice([1, 2, 5]) if chance.random() < 0.1 else 1_000_000,
        max_tries=chance.choice([1, 2, 3, 5]),
        max_robots_tries=chance.choice([1, 2, 10]),
        max_robots_fetches=chance.randint(1, 2) if few else 1_000,
        max_active_origins=chance.randint(1, max(1, sites // 2)) if few else 10_000,
        ending=chance.choice(["join", "join", "close", "drain"]),
    )


def _pacing(chance: Random, span: float) -> PacingPolicy:
    crawl = (
        ScopeLimit(chance.choice([0.0, 0.1, 1.0]), chance.choice([1, 1, 3]))
        if chance.random() < 0.1
        else None
    )
    options = {"scopes": Scopes(crawl=crawl)} if crawl is not None else {}
    return PacingPolicy(
        min_delay=chance.choice([0.0, 0.1, 1.0, 1.0, 1.0, 10.0, span / 10, 600.0]),
        jitter=chance.choice([0.0, 0.0, 0.5]),
        concurrency=chance.choice([1, 1, 1, 1, 2, 5]),
        anchor=chance.choice([Anchor.FIRST_BYTE, Anchor.FIRST_BYTE, Anchor.END]),
        max_crawl_delay=chance.choice([300.0, 300.0, 20.0, 2_000.0]),
        max_retry_after=chance.choice([60.0, 600.0, 86_400.0]),
        backoff=chance.choice([1.0, 10.0]),
        max_backoff=chance.choice([30.0, 3_600.0]),
        latency_factor=chance.choice([0.0, 0.0, 3.0]),
        obey_visit_time=chance.random() < 0.8,
        circuit_failures=chance.choice([0, 2, 10, 10]),
        circuit_rest=chance.choice([5.0, 60.0]),
        **options,  # type: ignore[arg-type]
    )


def _robots_policy(chance: Random, sites: int) -> RobotsPolicy:
    min_ttl = chance.choice([300.0, 300.0, 5.0, 0.0])
    return RobotsPolicy(
        default_ttl=chance.choice([86_400.0, 600.0]),
        min_ttl=min_ttl,
        refresh_ahead=chance.choice([0.1, 0.1, 0.0, 0.9]),
        keep_stale=chance.random() < 0.8,
        retry_min=chance.choice([1.0, 5.0]),
        retry_max=chance.choice([60.0, 3_600.0]),
        busy_retry_max=chance.choice([30.0, 300.0]),
        max_retry_after=chance.choice([60.0, 86_400.0]),
        max_origins=chance.randint(1, max(1, sites // 2)) if chance.random() < 0.25 else 100_000,
    )


def _connections(chance: Random, pacing: PacingPolicy) -> tuple[int, float]:
    """Return how many fetches have a connection at one time, and how long it takes, if there is a wide scope."""
    if not isinstance(pacing.scopes, Scopes) or chance.random() < 0.2:
        return 100, 0.0
    return chance.choice([1, 2, 3, 100]), chance.choice([0.0, 0.05, 1.0, 8.0])


def _kills(chance: Random, span: float, frontiers: Sequence[FrontierPlan]) -> tuple[float, ...]:
    if not any(each.kept for each in frontiers) or chance.random() < 0.7:
        return ()
    return tuple(sorted(chance.uniform(0, span) for _ in range(chance.choice([1, 1, 2]))))


def _faults(chance: Random, *, troubled: bool) -> frozenset[str]:
    names = [
        "listener", "listener-cancelled", "throttle", "throttle-nonsense", "store", "headers", "throttle-hasty"
    ]  # fmt: skip
    return frozenset(each for each in names if chance.random() < (0.15 if troubled else 0.08))


def _steps(chance, sites, frontiers, span):
    kinds = [kind for kind, weight in _WEIGHTS.items() for _ in range(weight)]
    if not frontiers:
        kinds = [kind for kind in kinds if kind not in {"put", "pause", "cancel", "worker"}]
    if chance.random() < 0.8:
        # Setting the wall clock loosens many bounds, so few worlds do it.
        kinds = [kind for kind in kinds if kind != "wall"]
    early = chance.random() < 0.5
    steps = []
    for number in range(_some(chance, 60) + (2 if frontiers else 0)):
        at = 0.0 if early and chance.random() < 0.5 else chance.uniform(0, span)
        kind = chance.choice(kinds)
        many = _some(chance, 60) if kind in {"put", "hold"} else 1
        focus = chance.randrange(len(sites))
        targets = tuple(focus if chance.random() < 0.3 else chance.randrange(len(sites)) for _ in range(many))
        frontier = chance.randrange(max(1, len(frontiers)))
        steps.append(Step(at, kind, targets, frontier, number, _options(chance, kind, span)))
    if frontiers and not any(step.kind == "put" for step in steps):
        steps.append(Step(0.0, "put", tuple(range(len(sites))), 0, len(steps)))
    return tuple(sorted(steps, key=lambda step: step.at))


def _options(chance: Random, kind: str, span: float) -> tuple[tuple[str, float], ...]:
    options: dict[str, float] = {}
    match kind:
        case "put":
            options["many"] = chance.random() < 0.5
            if chance.random() < 0.2:
                options["later"] = chance.choice([0.5, 5.0, span / 3])
            if chance.random() < 0.1:
                options["again"] = 1
        case "pacing":
            options["min_delay"] = chance.choice([0.0, 0.5, 5.0])
            options["concurrency"] = chance.choice([1, 5])
            options["times"] = chance.choice([1, 1, 5, 20])
            options["every"] = chance.choice([0.05, 0.5, 5.0])
            options["end"] = chance.random() < 0.5
            options["crawl"] = chance.random() < 0.5
        case "wall":
            options["by"] = chance.choice([-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0])
        case "pause":
            options["for"] = chance.choice([0.5, 5.0, span / 3])
        case _:
            pass
    if kind in {"put", "permit", "check"} and chance.random() < 0.1:
        options["patience"] = chance.choice([0.0, 0.01, 1.0, span / 5])
    return tuple(options.items())
