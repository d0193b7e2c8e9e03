"""parse and Robots: from a file's octets to its groups, sitemaps and rules."""

from collections.abc import Iterator, Mapping

from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.groups import Group, Sections, bind, field_lines, groups, rules_of, select_groups
from polite.robots.lines import ABSOLUTE_URL, Field, fields_of, lines, octets, readable, text, to_text
from polite.robots.result import KeptOctets
from polite.robots.rules import RuleSet
from polite.robots.serialization import pack, unpack
from polite.robots.signals import CleanParam, Signals, SignalSet, SiteSignals, site_signals
from polite.robots.trace import DecisionTrace, explain


class Bindings:
    """Binds one agent after another.

    Keeps only the last rules, so memory does not grow with the number of agents. Use `Robots.rules_for` for the few
    agents of a crawler, whose rules are used again and again.
    """

    def __init__(self, sections: Sections, dialect: Dialect) -> None:
        self._sections = sections
        self._dialect = dialect
        self._bound: list[range] | None = None
        self._rules = RuleSet((), group=None, dialect=dialect)

    def names(self) -> Iterator[str]:
        """Iterate over the values of all user-agent lines, as written."""
        return (readable(value) for _, _, value in self._sections.agents)

    def rules_for(self, agent: UserAgent) -> RuleSet:
        """Return rules that decide as the agent's rules do.

        If the same groups bind this agent and the previous one, the result is the same object. Its `group` may then be the
        name of the other agent.
        """
        name, bound = select_groups(self._sections, agent, self._dialect)
        if bound != self._bound:
            self._rules = rules_of(self._sections, bound, name, self._dialect)
            self._bound = bound
        return self._rules


# To read, bind and prepare (`RuleSet.prepare`) a larger file may take longer than 5 ms, if it has wildcard rules only: 1 to
# 5 ms at this size, tens of ms at 500 KiB (`python -m benchmarks.decide`). An event loop should leave such a file to a
# thread. An ordinary file of this size takes about 0.7 ms.
PARSE_SIZE_FOR_THREAD = 24_576

# Agents whose rules are cached per file: a crawler has one, a tester a few.
_MAX_AGENTS = 32


class Robots:
    """A parsed robots.txt, for any number of agents. Immutable.

    Everything but the rules that bind an agent is read on first access.

        >>> from polite import parse
        >>> robots = parse("User-agent: *\\nDisallow: /private/\\nSitemap: https://example.com/sitemap.xml")
        >>> robots.rules_for("ExampleBot").allows("/private/a")
        False
        >>> robots.sitemaps
        ('https://example.com/sitemap.xml',)

    Attributes:
        dialect: how it was read.
    """

    __slots__ = (
        *("_agent_signals", "_bound", "_extensions", "_file", "_first", "_groups", "_signals", "_site"),
        "dialect",
    )

    def __init__(self, body: bytes, dialect: Dialect) -> None:
        self.dialect: Dialect = dialect
        self._file: bytes | KeptOctets = body
        # The rules of the first agent, until one asks again: many a file is read for one decision only.
        self._first: tuple[UserAgent, RuleSet] | None = None
        self._bound: dict[str | UserAgent, RuleSet] = {}
        self._groups: tuple[Group, ...] | None = None
        self._site: tuple[tuple[str, ...], str | None] | None = None
        self._extensions: dict[str, tuple[tuple[int, str], ...]] | None = None
        self._signals: SiteSignals | None = None
        self._agent_signals: dict[UserAgent, SignalSet] | None = None

    @property
    def _body(self) -> bytes:
        # Read once: another thread may compress it now.
        file = self._file
        return file if isinstance(file, bytes) else file.octets

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in the order of the file."""
        if self._groups is None:
            self._groups = tuple(groups(self._sections()))
        return self._groups

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The absolute URLs of the Sitemap lines, as written (S1)."""
        return self._site_values()[0]

    @property
    def host(self) -> str | None:
        """The value of the first Host line, or None."""
        return self._site_values()[1]

    @property
    def extensions(self) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """The fields that the dialect does not know, in lower case, with (line, value) pairs."""
        if self._extensions is None:
            # Read on demand: an HTML page is full of such "fields", and they are rarely needed.
            found: dict[str, list[tuple[int, str]]] = {}
            for line in lines(self._body, self.dialect):
                if line.field is Field.UNKNOWN:
                    name = readable(line.name).lower()
                    found.setdefault(name, []).append((line.number, readable(line.value)))
            self._extensions = {name: tuple(pairs) for name, pairs in found.items()}
        return self._extensions

    def rules_for(self, agent: str | UserAgent) -> RuleSet:
        """Return the rules that bind the agent. They are cached. Raises InvalidUserAgent."""
        rules = self._bound.get(agent)
        return self._bind(agent) if rules is None else rules

    def bindings(self) -> Bindings:
        """Return a reader for thousands of agents, which keeps only the last rules."""
        return Bindings(self._sections(), self.dialect)

    def decide(self, agent: str | UserAgent, url: str) -> Decision:
        """Decide whether the agent may fetch an absolute URL, or a path that starts with "/".

        A path (with its query) is taken as a canonical URL has it, but characters outside ASCII mean their escapes; `//x`
        is a path; a fragment is dropped. The caller must know that the URL belongs to the file's origin.

        Raises:
            InvalidURL: if the URL names no host.
            InvalidUserAgent: if the agent's header is invalid.
        """
        rules = self.rules_for(agent)
        return rules.decide(url if url[:1] == "/" else Target.of(url).path)

    def explain(self, agent: str | UserAgent, url: str) -> DecisionTrace:
        """Decide about an agent and a URL as `decide` does, and return everything that led to the decision.

        Reads the file several times. Raises InvalidURL and InvalidUserAgent.
        """
        return explain(self._body, UserAgent.of(agent), _path(url), self.dialect)

    @property
    def licenses(self) -> tuple[str, ...]:
        """The absolute URLs of all License lines (RSL 1.0), in whatever group; see `licenses_for`."""
        return tuple(url for _, url in self._site_signals.licenses)

    def licenses_for(self, agent: str | UserAgent) -> tuple[str, ...]:
        """Return the absolute URLs of the License lines that apply to an agent: those of its group.

        If its group has none, or the file has no group for it, the lines above the first group apply (RSL 1.0, 4.4.2 and
        4.4.3). Raises InvalidUserAgent.
        """
        return tuple(url for _, url in self.signals_for(agent).licenses)

    @property
    def clean_params(self) -> tuple[CleanParam, ...]:
        """The Clean-param lines, which apply to all agents."""
        return self._site_signals.clean_params

    def signals_for(self, agent: str | UserAgent) -> SignalSet:
        """Return the Content-Signal, Content-Usage and License lines for an agent, cached as the rules are.

        Raises InvalidUserAgent.
        """
        agent = UserAgent.of(agent)
        known = self._agent_signals
        if known is None:
            known = self._agent_signals = {}
        found = known.get(agent)
        if found is None:
            found = self._site_signals.bound(self._sections(), agent, self.dialect)
            if len(known) >= _MAX_AGENTS:
                known.clear()
            known[agent] = found
        return found

    def signals(self, agent: str | UserAgent, url: str) -> Signals:
        """Return the signals for an agent about a URL, or a path as `decide` takes it.

        Raises InvalidURL and InvalidUserAgent.
        """
        return self.signals_for(agent).at(_path(url))

    def _bind(self, key: str | UserAgent) -> RuleSet:
        """Bind an agent. Cache the rules under `key`, too: a str is looked up faster."""
        agent = UserAgent.of(key)
        # Each is read once: other threads may be here, too.
        file, first = self._file, self._first
        if isinstance(file, bytes):
            if first is None:
                self._first = first = agent, bind(self._sections(), agent, self.dialect)
                return first[1]
            # A file that is asked again is kept. Its octets are needed for other agents and other lines only.
            self._bound[first[0]] = first[1]
            self._file = KeptOctets(file)
            self._first = None
        if len(self._bound) >= _MAX_AGENTS:
            self._bound.clear()
        rules = self._bound.get(agent)
        if rules is None:
            rules = bind(self._sections(), agent, self.dialect)
        self._bound[agent] = rules
        if key is not agent:
            self._bound[key] = rules
        return rules

    def _sections(self) -> Sections:
        return Sections(text(self._body, self.dialect), self.dialect)

    def _site_values(self) -> tuple[tuple[str, ...], str | None]:
        """Return the sitemaps and the host. They belong to no group and do not end one (G6)."""
        if self._site is None:
            counted, fields = text(self._body, self.dialect), fields_of(self.dialect)
            urls = [url for _, _, url in field_lines(counted, Field.SITEMAP, fields)]
            hosts = [host for _, _, host in field_lines(counted, Field.HOST, fields) if host]
            sitemaps = tuple(readable(url) for url in urls if ABSOLUTE_URL.match(url))
            self._site = sitemaps, readable(hosts[0]) if hosts else None
        return self._site

    @property
    def _site_signals(self) -> SiteSignals:
        if self._signals is None:
            self._signals = site_signals(self._body, self.dialect)
        return self._signals

    def to_text(self) -> str:
        """Return a tidy file, without comments, that decides as this one does in the same dialect.

        Encode it with `to_text().encode("utf-8", "surrogateescape")`: if the file is at a limit of its dialect, octets that
        are not UTF-8 are lone surrogates. Otherwise they are escapes, and any encoding will do.
        """
        return to_text(self._body, self.dialect, {group.lines[0] for group in self.groups})

    def to_bytes(self) -> bytes:
        """Return a compact form for `from_bytes`.

        It stores the dialect's name, but no dialect of your own.
        """
        return pack(self._body, self.dialect)

    @classmethod
    def from_bytes(cls, octets: bytes, dialect: Dialect | None = None) -> "Robots":
        """Return what `to_bytes` stored, read in the stored dialect or in `dialect`.

        Raises:
            CorruptRobots: if the octets are no compact form.
            InvalidOption: if the file was read in a dialect of your own and `dialect` is missing.
        """
        return parse(*unpack(octets, dialect))

    def __reduce__(self) -> tuple[object, tuple[bytes, Dialect]]:
        return parse, (self._body, self.dialect)


def _path(url: str) -> str:
    return url if url.startswith("/") else Target.of(url).path


def parse(body: bytes | str, dialect: Dialect = RFC9309) -> Robots:
    """Read a robots.txt. Never raises on content: lines without meaning are skipped (F2).

        >>> from polite import parse
        >>> parse("User-agent: *\\nAllow: /a\\nDisallow: /").decide("ExampleBot", "/a").allowed
        True

    Args:
        body: the file. Only the first `dialect.max_bytes` octets count (H9). A str counts as its UTF-8; lone surrogates of
            Python's error handler "surrogateescape" count as their octets.
        dialect: how to read it.

    Raises:
        TypeError: if an argument has another type.
    """
    if not isinstance(dialect, Dialect):
        raise TypeError(f"dialect must be a Dialect, got {dialect!r}; see polite.dialect(name)")
    if isinstance(body, str):
        # A character has at least one octet, so the rest could not count.
        body = octets(body[: dialect.max_bytes + 1])
    elif not isinstance(body, bytes):
        raise TypeError(f"a robots.txt must be bytes or str, got {type(body).__name__}")
    # One octet more tells that the last line may be cut.
    body = body[: dialect.max_bytes + 1]
    return Robots(body, dialect)
