"""The plan of a simulated world: sites, policies, frontiers and timed steps, as plain values that can be shrunk."""

from dataclasses import dataclass, field

from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import Scopes
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
        """Return for how long Cache-Control lets it be used (seconds)."""
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
    """One frontier.

    Attributes:
        kept: whether it keeps its queue in a file.
        workers: the number of tasks that iterate over it.
        ending: "join", "close" or "drain".
    """

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
    def sends_late(self) -> bool:
        """Whether other turns may be granted between the turn of a robots.txt fetch and its request."""
        return has_concurrency(self) and (self.connections < len(self.sites) or self.connect_s > 0)

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
