"""The plan of a world of several machines: hosts, steps and faults at their times, drawn from a seed before anything runs.

Worlds are short: what counts is how times compare with the lease, and each second of a crawl costs batches.
"""

from dataclasses import dataclass, replace
from random import Random

from polite.schedulers import FileOrder

# The first part of each page's path. robots.txt may disallow the last.
FOLDERS = ("a", "b", "c")
_ORDERS: tuple[FileOrder, ...] = ("fifo", "fifo", "fifo", "priority", "depth", "deadline")


@dataclass(frozen=True, slots=True)
class OriginPlan:
    """One origin.

    Attributes:
        crawl_delay: what its robots.txt requests (seconds); None: nothing.
        robots: "found", "missing" (404), or "error" (500) for the first half of the span, then "found".
        disallowed: whether folder "c" is.
        trouble: the share of pages that get a 503, perhaps with a Retry-After.
    """

    name: str
    crawl_delay: float | None
    robots: str
    disallowed: bool
    latency_s: float
    trouble: float


@dataclass(frozen=True, slots=True)
class Step:
    """An action of a machine: "put" of some pages into the frontier, or "permit" or "check" of one at the gate.

    Attributes:
        not_before_s: how long put pages wait at least (seconds); None: they are ready at once.
        rank: their priority and depth, and their deadline in seconds from now.
        at_once: they are put by one call, not one after the other.
    """

    at: float
    machine: int
    kind: str
    urls: tuple[str, ...]
    not_before_s: float | None = None
    rank: int = 0
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong.

    Attributes:
        kind: of a machine: "stop" (its process does not run for a while), "kill" (and a new process begins later), or "cut" (no
            message of it passes). Of the server: "pause" (it answers later), "down" (it refuses connections), "restart" (nothing is
            lost), "failover" (the writes of the last `for_s` are), "empty".
        for_s: how long it takes.
    """

    at: float
    kind: str
    machine: int
    for_s: float


@dataclass(frozen=True, slots=True)
class WirePlan:
    """How messages travel.

    Attributes:
        delays: seconds for one way; each message draws one.
        lost: the share of commands that never reach the server.
        answer_lost: the share of commands that it executes, and whose reply is lost.
        refused: the share of commands whose connection breaks at once.
        late: the share of commands that are executed long after their sender gave them up, perhaps a second time.
    """

    delays: tuple[float, ...]
    lost: float = 0.0
    answer_lost: float = 0.0
    refused: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class MachinesPlan:
    """One world.

    Attributes:
        partitions: how many the crawl has.
        order: the order of the schedulers.
        frontiers: for each machine, the number of workers of its frontier; 0: it has a gate alone.
        leaves: machines that end when their steps are done, and do not wait until the crawl is over.
        wall_s: by how much each machine's wall clock is wrong (seconds).
        connect_s: how long a crawler waits between asking for its turn and sending, at most.
    """

    seed: int
    partitions: int
    order: FileOrder
    origins: tuple[OriginPlan, ...]
    frontiers: tuple[int, ...]
    leaves: frozenset[int]
    wall_s: tuple[float, ...]
    lease_s: float
    min_delay: float
    max_tries: int
    connect_s: float
    span: float
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    wire: WirePlan = WirePlan(())

    @property
    def machines(self) -> int:
        return len(self.frontiers)

    @property
    def empties(self) -> bool:
        return any(each.kind == "empty" for each in self.faults)

    def puts(self, url: str) -> int:
        return sum(step.urls.count(url) for step in self.steps if step.kind == "put")


def draw_machines(seed: int, *, machines: int | None = None) -> MachinesPlan:
    chance = Random(f"machines {seed}")
    count = machines or chance.choice([2, 2, 2, 3, 3, 4])
    lease = chance.choice([1.5, 2.0, 2.0, 3.0, 4.0, 15.0])
    span = lease * chance.choice([0.5, 1.5, 3.0])
    min_delay = chance.choice([0.1, 0.5, 1.0, 3.0])
    origins = tuple(_origin(chance, number, lease) for number in range(chance.choice([1, 2, 3, 5])))
    frontiers = _frontiers(chance, count)
    plan = MachinesPlan(
        seed=seed,
        partitions=chance.choice([1, 1, 1, 1, 1, 2, 2, 2, 3, 4]),
        order=chance.choice(_ORDERS),
        origins=origins,
        frontiers=frontiers,
        leaves=frozenset(each for each in range(1, count) if chance.random() < 0.1),
        wall_s=tuple(chance.choice([0.0, 0.0, 0.0, 0.7, -3_600.0, 3_600.0]) for _ in range(count)),
        lease_s=lease,
        min_delay=min_delay,
        max_tries=chance.choice([3, 10, 10]),
        connect_s=chance.choice([0.0, 0.0, 0.5, 2.0]),
        span=span,
    )
    steps, faults, wire = _steps(chance, plan), _faults(chance, count, span, lease), _wire(chance, lease)
    plan = replace(plan, steps=steps, faults=faults, wire=wire)
    # A process that could not open before the server is emptied, and begins just after, knows of nothing either: see _faults.
    return replace(plan, wire=WirePlan(wire.delays)) if plan.empties else plan


def _origin(chance: Random, number: int, lease: float) -> OriginPlan:
    scheme = chance.choice(["https", "https", "http"])
    # Some hosts have two origins, which share a home.
    host = max(0, number - (chance.random() < 0.1))
    return OriginPlan(
        name=f"{scheme}://h{host}.example" if host == number else f"{scheme}://h{host}.example:8{number:03}",
        crawl_delay=chance.choice([None, None, 0.3, lease / 2, min(5.0, 1.5 * lease)]),
        robots=chance.choice(["found", "found", "found", "missing", "error"]),
        disallowed=chance.random() < 0.3,
        latency_s=chance.choice([0.0, 0.05, 0.3, 0.3, 3.0]),
        trouble=chance.choice([0.0, 0.0, 0.0, 0.2]),
    )


def _frontiers(chance: Random, count: int) -> tuple[int, ...]:
    kind = chance.random()
    if kind < 0.1:
        return (0,) * count
    if kind < 0.25:
        # One frontier beside gates.
        return (chance.choice([1, 3, 8]), *(0 for _ in range(count - 1)))
    return (chance.choice([1, 3, 8]), *(chance.choice([0, 1, 3, 3, 8]) for _ in range(count - 1)))


def _steps(chance: Random, plan: MachinesPlan) -> tuple[Step, ...]:
    slowest = {
        each.name: max(plan.min_delay, each.crawl_delay or 0.0, each.latency_s) for each in plan.origins
    }
    most = {name: max(1, min(8, round(2 * plan.lease_s / slow))) for name, slow in slowest.items()}
    drawn: dict[str, list[str]] = {each.name: [] for each in plan.origins}

    def url(step: int, number: int) -> str:
        origin = chance.choice(plan.origins).name
        urls = drawn[origin]
        if len(urls) >= most[origin] or (urls and chance.random() < 0.1):
            return chance.choice(urls)
        urls.append(f"{origin}/{chance.choice(FOLDERS)}/{step * 100 + number}")
        return urls[-1]

    def step(number: int) -> Step:
        machine = chance.randrange(plan.machines)
        kinds = ["put", "put", "put", "permit"] if plan.frontiers[machine] else ["permit", "permit", "check"]
        kind = chance.choice(kinds)
        at = round(chance.uniform(0, plan.span) if chance.random() < 0.8 else 0.0, 3)
        if kind != "put":
            return Step(at, machine, kind, (url(number, 0),))
        urls = tuple(url(number, each) for each in range(chance.choice([1, 2, 5])))
        not_before = chance.choice([None] * 6 + [0.5, plan.lease_s / 2, 2 * plan.lease_s])
        return Step(at, machine, kind, urls, not_before, chance.randrange(4), chance.random() < 0.5)

    steps = [step(number) for number in range(chance.choice([2, 4, 8, 12]))]
    return tuple(sorted(steps, key=lambda each: each.at))


def _faults(chance: Random, machines: int, span: float, lease: float) -> tuple[Fault, ...]:
    kinds = ["stop", "stop", "kill", "kill", "cut", "pause", "down", "restart", "failover"]
    faults = []
    for _ in range(chance.choice([0, 1, 1, 2, 4])):
        kind = chance.choice(kinds)
        share = chance.choice([0.02, 0.2, 0.5, 1.1, 1.5, 3.0])
        for_s = (
            chance.choice([0.0, 0.2, 1.0, 1.5])
            if kind in {"restart", "failover"}
            else round(share * lease, 3)
        )
        faults.append(Fault(round(chance.uniform(0, span * 1.2), 3), kind, chance.randrange(machines), for_s))
    if chance.random() < 0.05:
        # A process that begins after that knows of nothing.
        faults = [each for each in faults if each.kind != "kill"]
        faults.append(Fault(round(chance.uniform(lease, span + lease), 3), "empty", 0, 0.0))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _wire(chance: Random, lease: float) -> WirePlan:
    # Slower ones would not renew a lease in time.
    slow = (0.001, min(0.4, 0.2 * lease), min(1.1, 0.4 * lease))
    delays = chance.choice([(0.0005,), (0.0005, 0.002), (0.001, 0.01, 0.1), slow])
    if chance.random() < 0.5:
        return WirePlan(delays)
    shares = (chance.choice([0.0, 0.02, 0.1]) for _ in range(4))
    return WirePlan(delays, *shares)
