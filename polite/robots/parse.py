"""From a file's octets to Robots: its groups, its sitemaps, and what else it says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polite.origin import Target
from polite.robots import explained, packed, signals, text
from polite.robots.agent import UserAgent
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.group import Group, bind
from polite.robots.lines import WHITE, Field, Fields, lines, octets, readable, rows
from polite.robots.rules import Decision, RuleLine, RuleSet

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
# Of the agents that ask one file so many are remembered: a crawler has one, a tester a handful.
_MOST_BOUND = 32


class Robots:
    """A robots.txt that was read, to be asked for any agent. Not to be changed.

    `groups` in the order of the file. `sitemaps`: the absolute URLs, as written (S1). `host`: the value of the
    first Host line, or None. `dialect`: how it was read.
    """

    __slots__ = ("_body", "_bound", "_extensions", "_signals", "dialect", "groups", "host", "sitemaps")

    def __init__(
        self,
        body: bytes,
        dialect: Dialect,
        groups: tuple[Group, ...],
        *,
        sitemaps: tuple[str, ...] = (),
        host: str | None = None,
    ) -> None:
        self.dialect = dialect
        self.groups = groups
        self.sitemaps = sitemaps
        self.host = host
        self._body = body
        self._bound: dict[UserAgent, RuleSet] = {}
        self._extensions: dict[str, tuple[tuple[int, str], ...]] | None = None
        self._signals: signals.SiteSignals | None = None

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
        agent = UserAgent.of(agent)
        rules = self._bound.get(agent)
        if rules is None:
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            rules = self._bound[agent] = bind(self.groups, agent, self.dialect)
        return rules

    def decide(self, agent: str | UserAgent, url: str) -> Decision:
        """Whether the agent may fetch an absolute URL, or a path (with its query) that starts with "/".

        A path is taken as a canonical URL has it, but for characters outside ASCII, which stand for their
        escapes; `//x` is a path; a fragment is dropped. Whether the URL is of the file's origin is for the
        caller to know. Raises InvalidURL and InvalidUserAgent.
        """
        rules = self.rules_for(agent)
        return rules.decide(_path(url))

    def explain(self, agent: str | UserAgent, url: str) -> explained.Explained:
        """The same decision with all that led to it. Reads the file about twenty times. Raises what `decide` raises."""
        agent, body = UserAgent.of(agent), self._body
        return explained.explain(self, body, agent, _path(url), lambda dialect: parse(body, dialect))

    @property
    def licenses(self) -> tuple[str, ...]:
        """The absolute URLs of its License lines (Really Simple Licensing), which bind every agent."""
        return self._site_signals.licenses

    @property
    def clean_params(self) -> tuple[signals.CleanParam, ...]:
        """Its Clean-param lines, which are tied to no agent."""
        return self._site_signals.clean_params

    def signals_for(self, agent: str | UserAgent) -> signals.SignalSet:
        """What Content-Signal and Content-Usage lines of the groups that bind it say. Raises InvalidUserAgent."""
        agent = UserAgent.of(agent)
        bound = signals.bound(self.groups, agent, self.rules_for(agent).group, self.dialect)
        return self._site_signals.of_groups(self.groups, bound, self.dialect)

    def signals(self, agent: str | UserAgent, url: str) -> signals.Signals:
        """The same for one URL, or a path as `decide` takes it. Raises InvalidURL and InvalidUserAgent."""
        return self.signals_for(agent).at(_path(url))

    @property
    def _site_signals(self) -> signals.SiteSignals:
        if self._signals is None:
            self._signals = signals.read(self._body, self.dialect)
        return self._signals

    def to_text(self) -> str:
        """A tidy file that decides as this one does, read in the same dialect; comments are left out."""
        return text.to_text(self._body, self.dialect, {group.lines[0] for group in self.groups})

    def to_bytes(self) -> bytes:
        """A compact form, for `from_bytes`. Of the dialect the name travels, not a dialect of your own."""
        return packed.pack(self._body, self.dialect)

    @classmethod
    def from_bytes(cls, octets: bytes, dialect: Dialect | None = None) -> "Robots":
        """What `to_bytes` gave, read in the dialect that it names or in the one given.

        Raises CorruptRobots for any other octets, and InvalidOption when a dialect of your own was not given.
        """
        known = packed.unpack(octets, dialect)
        return parse(known.body, known.dialect)

    def __reduce__(self) -> tuple[object, tuple[bytes, Dialect]]:
        return parse, (self._body, self.dialect)


def _path(url: str) -> str:
    return url if url.startswith("/") else Target.of(url).path


def parse(body: bytes | str, dialect: Dialect = RFC9309) -> Robots:
    """Read a robots.txt. Never raises on content: lines that mean nothing are passed over (F2).

    Only the first `dialect.max_bytes` octets count (H9). A str is taken as its UTF-8. Other types raise TypeError.
    """
    if isinstance(body, str):
        # A character is at least one octet, so what is cut off here could not have counted.
        body = octets(body[: dialect.max_bytes])
    elif not isinstance(body, bytes):
        raise TypeError(f"a robots.txt is bytes or str, not {type(body).__name__}")
    body = body[: dialect.max_bytes]
    reader = _Reader(dialect)
    texts = rows(body, dialect)
    if len(body) >= dialect.max_bytes and not _is_disallow(texts[-1], dialect):
        # The limit may have cut the line short. A Disallow then forbids more than it should; any other line, an Allow
        # or a name above all, could allow more, and an incomplete line is no valid one.
        texts.pop()
    reader.read(texts)
    groups = tuple(draft.group() for draft in reader.drafts)
    return Robots(body, dialect, groups, sitemaps=tuple(reader.sitemaps), host=reader.host)


def _is_disallow(text: str, dialect: Dialect) -> bool:
    return Fields(dialect).split(text.partition("#")[0].strip(WHITE))[0] is Field.DISALLOW


@dataclass(slots=True)
class _Draft:
    """A group being read. `closed`: the next user-agent line starts another; a rule closes it too (G1, G2)."""

    agents: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rules: list[RuleLine] = field(default_factory=list)
    paces: list[tuple[Field, str]] = field(default_factory=list)
    closed: bool = False

    def group(self) -> Group:
        return Group(tuple(self.agents), tuple(self.lines), tuple(self.rules), tuple(self.paces))


class _Reader:
    """Takes a file's lines and sorts them into groups (G1 to G6)."""

    def __init__(self, dialect: Dialect) -> None:
        self.drafts: list[_Draft] = []
        self.sitemaps: list[str] = []
        self.host: str | None = None
        self._dialect = dialect

    def read(self, texts: Sequence[str]) -> None:
        """As `lines` does, but with nothing made for a line that says nothing: 500 KiB may be all of these."""
        fields, forgiving = Fields(self._dialect), self._dialect.colon_optional
        none, disallow, allow, agent = Field.NONE, Field.DISALLOW, Field.ALLOW, Field.USER_AGENT
        draft: _Draft | None = None
        for number, text in enumerate(texts, 1):
            name, colon, value = text.partition(":")
            which = fields[name] if colon else none
            if which is none:
                content = text.partition("#")[0].strip(WHITE) if forgiving else ""
                if " " in content or "\t" in content:
                    which, _, value = fields.split(content)
                if which is none:
                    continue
            if "#" in value:
                value = value.partition("#")[0]
            if which is disallow or which is allow:
                if draft is not None:  # G3: above any user-agent line it is nobody's rule
                    draft.rules.append((which is allow, value.strip(WHITE), number))
            elif which is agent:
                draft = self._drafted(draft, texts, number)
                draft.agents.append(readable(value.strip(WHITE)))
                draft.lines.append(number)
            else:
                self._other(which, value.strip(WHITE), draft)

    def _drafted(self, draft: _Draft | None, texts: Sequence[str], number: int) -> _Draft:
        """The group that a user-agent line belongs to: the one being read, or another."""
        if draft is None or draft.closed or draft.rules or self._separated(texts, number):
            draft = _Draft()
            self.drafts.append(draft)
        return draft

    def _separated(self, texts: Sequence[str], number: int) -> bool:
        """Whether a blank line stands before the line, perhaps with comments between, and means something."""
        if not self._dialect.blank_line_separates:
            return False
        before = (texts[index].strip(WHITE) for index in range(number - 2, -1, -1))
        return next((text for text in before if not text.startswith("#")), "-") == ""

    def _other(self, which: Field, value: str, draft: _Draft | None) -> None:
        """What is no rule. Sitemap and Host are tied to no group, and do not end one (G6)."""
        if which is Field.SITEMAP:
            if _ABSOLUTE.match(value):
                self.sitemaps.append(readable(value))
        elif which is Field.HOST:
            self.host = self.host or readable(value) or None
        elif draft is not None:
            if which is not Field.UNKNOWN:
                draft.paces.append((which, value))
            draft.closed = draft.closed or self._dialect.any_field_ends_agents
