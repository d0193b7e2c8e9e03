"""Draws the plan of a world from its seed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.policy import RobotsPolicy
from tests.simulation.plan import FrontierPlan, Plan, RobotsResponse, Site, Step

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
        Site(
            f"h{host}.example",
            tuple(map(file, (*times[host], math.inf))),
            chance.choice([0.0, 0.01, 0.1]),
        )
        for host in hosts
    )
    frontier = replace(
        plan.frontiers[0] if plan.frontiers else _frontier(chance, len(sites)),
        max_active_origins=10_000,
        max_waiting=1_000_000,
    )
    puts = [
        Step(
            chance.uniform(0, span / 4), "put", tuple(chance.choice(hosts) for _ in range(20)), number=number
        )
        for number in range(2)
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


def _steps(
    chance: Random, sites: Sequence[Site], frontiers: Sequence[FrontierPlan], span: float
) -> tuple[Step, ...]:
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
