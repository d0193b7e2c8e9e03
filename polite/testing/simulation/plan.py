"""What happens in one simulated world, drawn from its seed before anything runs: plain values, so that a world can be shrunk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.policy import RobotsPolicy

# The folders of each site. Rules deny some of them, or "*", which is all.
FOLDERS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What a site answers for robots.txt until `until` (world seconds).

    `kind`: "found", "missing" (404), "error" (500), "busy" (503), "refused" (429), "redirect", "loop" (redirects without end),
    "silent" (no answer before the time-out) or "broken" (the connection fails). `denied`: folders. `padding`: octets of comment.
    """

    until: float
    kind: str
    denied: frozenset[str] = frozenset()
    crawl_delay: float | None = None
    rate: tuple[int, int] | None = None
    hours: tuple[int, int] | None = None
    cache_control: str | None = None
    retry_after: int | None = None
    padding: int = 0

    @property
    def text(self) -> bytes:
        """The file."""
        lines = [
            "User-agent: *",
            *(f"Disallow: /{'' if each == '*' else each}" for each in sorted(self.denied)),
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
    """One origin. `robots`: answers in order of their `until`. `trouble`: the share of pages that are no plain 200."""

    host: str
    robots: tuple[RobotsAnswer, ...]
    latency_s: float = 0.1
    trouble: float = 0.0

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def robots_at(self, now: float) -> RobotsAnswer:
        """What it answers at world time `now`."""
        return next((each for each in self.robots if now < each.until), self.robots[-1])


@dataclass(frozen=True, slots=True)
class FrontierPlan:
    """One frontier. `kept`: whether it lies in a file. `workers`: tasks that iterate over it."""

    kept: bool
    workers: int
    scheduler: str
    max_waiting: int
    max_tries: int
    max_robots_tries: int
    max_robots_fetches: int
    max_active_origins: int
    ending: str  # "join", "close" or "drain"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done at world time `at`.

    `kind`: "put", "permit", "check", "explain", "pump", "repace", "wall", "pause", "cancel", "worker" or "disk".
    `sites`: indices of `Plan.sites`, one for each URL. `options`: what else the kind needs, as drawn.
    """

    at: float
    kind: str
    sites: tuple[int, ...] = ()
    frontier: int = 0
    number: int = 0
    options: tuple[tuple[str, float], ...] = ()

    def option(self, name: str, default: float = 0.0) -> float:
        """One of `options`."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class Plan:
    """One world. `kills`: world times at which the process is killed and begins anew. `thread_s`: how long threads take."""

    seed: int
    sites: tuple[Site, ...]
    frontiers: tuple[FrontierPlan, ...]
    steps: tuple[Step, ...]
    pacing: PacingPolicy
    robots: RobotsPolicy
    span: float
    store: str = "none"  # "memory" or "file"
    kills: tuple[float, ...] = ()
    thread_s: tuple[float, ...] = (0.0,)
    saboteurs: frozenset[str] = field(default_factory=frozenset)

    def hop(self, site: Site, hop: int) -> Site:
        """Where a redirect of a site's robots.txt leads: to itself, or to another one that is always the same."""
        return site if hop % 2 else self.sites[(len(site.host) + hop) % len(self.sites)]

    def ways(self, site: Site) -> tuple[Site, ...]:
        """The sites that a site's robots.txt may lead through."""
        if not any(each.kind in {"redirect", "loop"} for each in site.robots):
            return ()
        return tuple(self.hop(site, hop) for hop in range(0, 6, 2))

    @property
    def slack_s(self) -> float:
        """How long the threads of one answer may take, all together: parsing it, keeping it, and what waits before it."""
        return 4.0 * max(self.thread_s) * (1 + len(self.sites)) + 0.001


def several_at_a_time(plan: Plan) -> bool:
    """Whether more than one request of a scope may be open at some time."""
    crawl = plan.pacing.scopes.crawl if isinstance(plan.pacing.scopes, Scopes) else None
    crawls = 1 if crawl is None else crawl.concurrency
    repaced = max((step.option("concurrency") for step in plan.steps), default=1)
    return max(plan.pacing.concurrency, crawls, repaced) > 1


def draw(seed: int) -> Plan:
    """The world of a seed."""
    chance = Random(seed)
    span = chance.choice([3.0, 30.0, 300.0, 3_000.0, 30_000.0])
    sites = tuple(_site(chance, number, span) for number in range(_some(chance, 40)))
    frontiers = tuple(_frontier(chance, len(sites)) for _ in range(chance.choice([0, 1, 1, 1, 1, 2])))
    busy = any(site.trouble for site in sites)
    thread = chance.choice([0.0, 0.001, 0.02, 0.02, 0.5, 5.0])
    steps = _steps(chance, sites, frontiers, span)
    return Plan(
        seed=seed,
        sites=sites,
        frontiers=frontiers,
        steps=steps,
        pacing=_pacing(chance, span),
        robots=_robots_policy(chance, len(sites)),
        span=span,
        store=chance.choice(["none", "none", "memory", "file"]),
        kills=_kills(chance, span, frontiers),
        thread_s=(0.0, thread / 3, thread),
        saboteurs=_saboteurs(chance, busy=busy),
    )


def _some(chance: Random, most: int) -> int:
    """Few, most often; never none."""
    return min(most, 1 + int(chance.expovariate(1 / chance.choice([1.0, 3.0, 10.0]))))


def _site(chance: Random, number: int, span: float) -> Site:
    answers = [_robots_answer(chance, chance.uniform(0, span)) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    answers.sort(key=lambda each: each.until)
    # In the end each site answers, or nothing could be said of how long a crawl may take.
    last = _robots_answer(chance, math.inf, well=True)
    latency = chance.choice([0.0, 0.01, 0.1, 1.0])
    return Site(
        f"h{number}.example",
        (*answers, last) if len(answers) > 1 else (last,),
        latency,
        chance.choice([0, 0, 0.3]),
    )


_KINDS = ("found",) * 6 + (
    "missing",
    "missing",
    "error",
    "busy",
    "refused",
    "redirect",
    "loop",
    "silent",
    "broken",
)
_AGES = (
    None,
    None,
    None,
    "no-cache",
    "max-age=0",
    "max-age=5",
    "max-age=60",
    "max-age=3600",
    "no-store",
    "max-age=99999999",
)


def _robots_answer(chance: Random, until: float, *, well: bool = False) -> RobotsAnswer:
    kind = chance.choice(("found", "found", "found", "missing", "redirect") if well else _KINDS)
    plain = chance.random() < 0.5
    denied = chance.choice([(), (), ("a",), ("b", "c"), ("a", "b")])
    if chance.random() < 0.08:
        denied = ("*",)
    retry_after = chance.choice([1, 7, 60, 3600, 86_000]) if chance.random() < 0.15 else None
    return RobotsAnswer(
        until,
        kind,
        frozenset(denied),
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


def _kills(chance: Random, span: float, frontiers: Sequence[FrontierPlan]) -> tuple[float, ...]:
    if not any(each.kept for each in frontiers) or chance.random() < 0.7:
        return ()
    return tuple(sorted(chance.uniform(0, span) for _ in range(chance.choice([1, 1, 2]))))


def _saboteurs(chance: Random, *, busy: bool) -> frozenset[str]:
    every = ["listener", "listener-cancelled", "throttle", "throttle-nonsense", "store", "headers"]
    return frozenset(each for each in every if chance.random() < (0.15 if busy else 0.08))


_WEIGHTS = {
    "put": 12, "permit": 6, "check": 2, "explain": 1, "pump": 1, "repace": 3, "wall": 1, "pause": 1, "cancel": 1, "worker": 1,
}  # fmt: skip


def _steps(
    chance: Random, sites: Sequence[Site], frontiers: Sequence[FrontierPlan], span: float
) -> tuple[Step, ...]:
    kinds = [kind for kind, weight in _WEIGHTS.items() for _ in range(weight)]
    if not frontiers:
        kinds = [kind for kind in kinds if kind not in {"put", "pause", "cancel", "worker"}]
    if chance.random() < 0.8:
        # A clock that is set makes many bounds loose: few worlds have one.
        kinds = [kind for kind in kinds if kind != "wall"]
    early = chance.random() < 0.5
    steps = []
    for number in range(_some(chance, 60) + (2 if frontiers else 0)):
        at = 0.0 if early and chance.random() < 0.5 else chance.uniform(0, span)
        kind = chance.choice(kinds)
        many = _some(chance, 60) if kind in {"put", "pump"} else 1
        focus = chance.randrange(len(sites))
        to = tuple(focus if chance.random() < 0.3 else chance.randrange(len(sites)) for _ in range(many))
        steps.append(
            Step(at, kind, to, chance.randrange(max(1, len(frontiers))), number, _options(chance, kind, span))
        )
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
        case "repace":
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
