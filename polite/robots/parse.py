"""From a file's octets to Robots: its groups, its sitemaps, and what else it says."""

import re
from collections.abc import Mapping

from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.bindings import Bindings
from polite.robots.decision import Decision
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.groups import Group, bind, groups
from polite.robots.lines import Field, fields_of, lines, octets, readable, text
from polite.robots.normalized_text import to_text
from polite.robots.rules import RuleSet
from polite.robots.sections import Sections, field_lines
from polite.robots.serialization import pack, unpack
from polite.robots.signals import CleanParam, GroupLocator, Signals, SignalSet, SiteSignals, site_signals
from polite.robots.trace import DecisionTrace, explain

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
# A file of more octets may take longer than 5 ms to be read, bound and made ready to be asked (`RuleSet.prepare`), if it
# holds nothing but wildcard rules: 1 to 5 ms at this size, tens of them at 500 KiB (`python -m benchmarks.decide`). An event
# loop leaves such a file to a thread. An ordinary file of this size takes about 0.7 ms.
PARSE_SIZE_FOR_THREAD = 24_576

# Of the agents that ask one file so many are remembered: a crawler has one, a tester a handful.
_MOST_BOUND = 32


class Robots:
    """A robots.txt that was read, to be asked for any agent. Not to be changed.

    `groups` in the order of the file. `sitemaps`: the absolute URLs, as written (S1). `host`: the value of the
    first Host line, or None. `dialect`: how it was read. All but the rules that bind an agent is read when asked for.

    A file of 500 KiB that was made for it takes up to 0.4 s (`groups`, `extensions`, `sitemaps`) or 0.8 s (`signals`, `to_text`)
    the first time, and `explain` up to 2 s each time. On an event loop, leave files beyond `PARSE_SIZE_FOR_THREAD` octets to
    a thread. A gate calls none of these.
    """

    __slots__ = (
        "_body",
        "_bound",
        "_extensions",
        "_groups",
        "_licenses",
        "_said",
        "_signals",
        "_site",
        "dialect",
    )

    def __init__(self, body: bytes, dialect: Dialect) -> None:
        self.dialect = dialect
        self._body = body
        self._bound: dict[str | UserAgent, RuleSet] = {}
        self._groups: tuple[Group, ...] | None = None
        self._site: tuple[tuple[str, ...], str | None] | None = None
        self._extensions: dict[str, tuple[tuple[int, str], ...]] | None = None
        self._signals: SiteSignals | None = None
        self._licenses: tuple[str, ...] | None = None
        self._said: dict[UserAgent, tuple[SignalSet, tuple[str, ...]]] = {}

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in the order of the file, whomever they bind."""
        if self._groups is None:
            self._groups = tuple(groups(self._sections()))
        return self._groups

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The absolute URLs of its Sitemap lines, as written (S1)."""
        return self._said_of_site()[0]

    @property
    def host(self) -> str | None:
        """The value of the first Host line, or None."""
        return self._said_of_site()[1]

    @property
    def extensions(self) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """For each field that the dialect does not know, in lower case, its (line, value) pairs."""
        if self._extensions is None:
            # Read again: an HTML page is full of such "fields", and hardly anybody asks for them.
            found: dict[str, list[tuple[int, str]]] = {}
            for line in lines(self._body, self.dialect):
                if line.field is Field.UNKNOWN:
                    name = readable(line.name).lower()
                    found.setdefault(name, []).append((line.number, readable(line.value)))
            self._extensions = {name: tuple(pairs) for name, pairs in found.items()}
        return self._extensions

    def rules_for(self, agent: str | UserAgent) -> RuleSet:
        """The rules that bind the agent, ready to be asked often. Raises InvalidUserAgent."""
        rules = self._bound.get(agent)
        return self._bind(agent) if rules is None else rules

    def bindings(self) -> Bindings:
        """Return a reader that binds agent after agent, of which there may be thousands, and keeps the last rules only."""
        return Bindings(self._sections(), self.dialect)

    def decide(self, agent: str | UserAgent, url: str) -> Decision:
        """Whether the agent may fetch an absolute URL, or a path (with its query) that starts with "/".

        A path is taken as a canonical URL has it, but for characters outside ASCII, which stand for their
        escapes; `//x` is a path; a fragment is dropped. Whether the URL is of the file's origin is for the
        caller to know. Raises InvalidURL and InvalidUserAgent.
        """
        rules = self.rules_for(agent)
        return rules.decide(url if url[:1] == "/" else Target.of(url).path)

    def explain(self, agent: str | UserAgent, url: str) -> DecisionTrace:
        """The same decision with all that led to it. Raises what `decide` raises.

        Reads the file a few times: see `Robots` for what that may cost.
        """
        body = self._body
        return explain(
            body,
            UserAgent.of(agent),
            _path(url),
            self.dialect,
            lambda dialect: text(body, dialect),
        )

    @property
    def licenses(self) -> tuple[str, ...]:
        """The absolute URLs of all its License lines (RSL 1.0), in whatever group they stand: see `licenses_for`."""
        if self._licenses is None:
            self._licenses = tuple(url for _, url in self._site_signals.licenses)
        return self._licenses

    def licenses_for(self, agent: str | UserAgent) -> tuple[str, ...]:
        """Return the licences that apply to an agent: the absolute URLs of the License lines of its group.

        If its group has none, or no group is for it, the lines above the first group apply (RSL 1.0, 4.4.2 and 4.4.3).
        Raises InvalidUserAgent.
        """
        return self._said_to(agent)[1]

    @property
    def clean_params(self) -> tuple[CleanParam, ...]:
        """Its Clean-param lines, which are tied to no agent."""
        return self._site_signals.clean_params

    def signals_for(self, agent: str | UserAgent) -> SignalSet:
        """What Content-Signal and Content-Usage lines of the groups that bind it say. Raises InvalidUserAgent."""
        return self._said_to(agent)[0]

    def signals(self, agent: str | UserAgent, url: str) -> Signals:
        """The same for one URL, or a path as `decide` takes it. Raises InvalidURL and InvalidUserAgent."""
        return self.signals_for(agent).at(_path(url))

    def _said_to(self, agent: str | UserAgent) -> tuple[SignalSet, tuple[str, ...]]:
        """The signals and the licences of an agent's groups, remembered as the rules are."""
        agent = UserAgent.of(agent)
        said = self._said.get(agent)
        if said is None:
            places = GroupLocator(self._sections(), agent, self.dialect)
            said = self._site_signals.of_groups(places, self.dialect), self._site_signals.licenses_of(places)
            if len(self._said) >= _MOST_BOUND:
                self._said.clear()
            self._said[agent] = said
        return said

    def _bind(self, asked: str | UserAgent) -> RuleSet:
        """Bind an agent, and remember it under its header too, which is quicker looked up."""
        agent = UserAgent.of(asked)
        if len(self._bound) >= _MOST_BOUND:
            self._bound.clear()
        rules = self._bound.get(agent)
        if rules is None:
            rules = bind(self._sections(), agent, self.dialect)
        self._bound[agent] = rules
        if asked is not agent:
            self._bound[asked] = rules
        return rules

    def _sections(self) -> Sections:
        return Sections(text(self._body, self.dialect), self.dialect)

    def _said_of_site(self) -> tuple[tuple[str, ...], str | None]:
        if self._site is None:
            self._site = _site_lines(text(self._body, self.dialect), self.dialect)
        return self._site

    @property
    def _site_signals(self) -> SiteSignals:
        if self._signals is None:
            self._signals = site_signals(self._body, self.dialect)
        return self._signals

    def to_text(self) -> str:
        """A tidy file that decides as this one does, read in the same dialect; comments are left out.

        In UTF-8 it is `to_text().encode("utf-8", "surrogateescape")`: in a file at a limit of its dialect, octets that are no
        UTF-8 stand for themselves as lone surrogates; elsewhere they are escapes, and any encoding of the text will do.
        """
        return to_text(self._body, self.dialect, {group.lines[0] for group in self.groups})

    def to_bytes(self) -> bytes:
        """A compact form, for `from_bytes`. Of the dialect the name travels, not a dialect of your own."""
        return pack(self._body, self.dialect)

    @classmethod
    def from_bytes(cls, octets: bytes, dialect: Dialect | None = None) -> "Robots":
        """What `to_bytes` gave, read in the dialect that it names or in the one given.

        Raises CorruptRobots for any other octets, and InvalidOption when a dialect of your own was not given.
        """
        known = unpack(octets, dialect)
        return parse(known.body, known.dialect)

    def __reduce__(self) -> tuple[object, tuple[bytes, Dialect]]:
        return parse, (self._body, self.dialect)


def _path(url: str) -> str:
    return url if url.startswith("/") else Target.of(url).path


def parse(body: bytes | str, dialect: Dialect = RFC9309) -> Robots:
    """Read a robots.txt. Never raises on content: lines that mean nothing are passed over (F2).

    Only the first `dialect.max_bytes` octets count (H9). A str is taken as its UTF-8, with the octets for which Python's error
    handler "surrogateescape" put lone surrogates. Other types raise TypeError.
    """
    if not isinstance(dialect, Dialect):
        raise TypeError(f"dialect={dialect!r}: a Dialect is needed, see polite.dialect(name)")
    if isinstance(body, str):
        # A character is at least one octet, so what is cut off here could not have counted.
        body = octets(body[: dialect.max_bytes])
    elif not isinstance(body, bytes):
        raise TypeError(f"a robots.txt is bytes or str, not {type(body).__name__}")
    body = body[: dialect.max_bytes]
    return Robots(body, dialect)


def _site_lines(counted: str, dialect: Dialect) -> tuple[tuple[str, ...], str | None]:
    """The sitemaps and the host: they are tied to no group, and do not end one (G6)."""
    fields = fields_of(dialect)
    sitemaps = (line.value for line in field_lines(counted, Field.SITEMAP, fields))
    hosts = (line.value for line in field_lines(counted, Field.HOST, fields))
    return tuple(readable(url) for url in sitemaps if _ABSOLUTE.match(url)), next(
        map(readable, filter(None, hosts)), None
    )
