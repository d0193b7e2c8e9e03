"""RuleSet: the rules that bind one crawler, and what they decide about a path."""

from collections.abc import Sequence
from functools import partial
from sys import maxsize
from typing import Any, NamedTuple

from polite.errors import InvalidURL
from polite.pace import RequestRate, VisitTime, slowest
from polite.robots.decision import Decision, Rule
from polite.robots.dialect import RFC9309, Dialect, Lifetime, WildcardConflict, let_threads_switch
from polite.robots.lines import readable
from polite.robots.pattern import Grammar, Matcher, grammar, matches, shape_matches
from polite.robots.reason import Reason
from polite.robots.result import FetchResult
from polite.robots.rule_index import (
    ALL_ALLOWED,
    ALL_DENIED,
    MAX_CACHED_RULES,
    MOST_RULES,
    NOT_BUILT,
    PASSES_NOTHING,
    STEPS_OF_A_RULE,
    Prefilter,
    RuleIndex,
    build_prefilter,
    compact,
)


class Match(NamedTuple):
    """A rule that matches a path.

    Attributes:
        precedence: odd for an Allow.
        matcher: what the rule matches.
        position: the position of the rule in the file.
    """

    precedence: int
    matcher: Matcher
    position: int


def _matcher(text: str, grammar: Grammar, path: str) -> Matcher | None:
    """Return what a rule matches, if the path is matched. Compares heads first, which is cheap."""
    let_threads_switch()
    if not grammar.has_wildcards:
        plain = grammar.plain(text)
        return plain if path.startswith(plain) else None
    head, star, _ = text.partition("*")
    if not path.startswith(grammar.plain(head if star else head.removesuffix("$"))):
        return None
    matcher = grammar.matcher(text)
    return matcher if matches(matcher, path) else None


def _ranked(
    paths: Sequence[str], marks: Sequence[int], grammar: Grammar
) -> tuple[Sequence[int], Sequence[str], Sequence[int]]:
    """Return the rules with a path: positions, normal forms and precedences, in file order."""
    positions: Sequence[int] = range(len(paths))
    if "" in paths:
        positions = [position for position in positions if paths[position]]
        paths = [path for path in paths if path]
    if grammar.rereads(paths):
        read = [
            (p, reading)
            for p, path in zip(positions, paths, strict=True)
            for reading in grammar.readings(path, allows=marks[p] & 1 == 1)
        ]
        positions, paths = [position for position, _ in read], [reading for _, reading in read]
    let_threads_switch()
    texts = grammar.normals(paths)
    let_threads_switch()
    lengths = grammar.octets(texts)
    if not isinstance(positions, range):
        marks = list(map(marks.__getitem__, positions))
    precedences = [2 * length + (mark & 1) for length, mark in zip(lengths, marks, strict=True)]
    return positions, texts, precedences


# Never changed: most rule sets are asked for verdicts only.
_NONE_MADE: dict[int, Rule] = {}
# The upper bound of steps of a quick decision; 0.35 ns each.
_QUICK = 1_750_000
# Steps for each octet of a path, of a rule that was not parsed yet.
_STEPS_OF_ANY_RULE = 66

# Limits for trying rules one by one within a few milliseconds: rules, their octets, and steps.
_MOST_TRIED = 1_000
_MOST_TEXT = 50_000
_MOST_STEPS = 16 * _QUICK

# From this many rules on, time is saved where a small set saves none.
_MANY_RULES = 1_000

# Memory that rule sets were measured to take once used (tests/robots/test_kept_files.py), plus a margin.
_OCTETS_OF_A_SET = 1_000
_OCTETS_WITHOUT_FILE = 400
_OCTETS_OF_A_RULE = 140
_OCTETS_OF_A_WILD_RULE = 130
_OCTETS_OF_A_MADE_RULE = 1_500
_OCTETS_OF_AN_OCTET = 6


class RuleSet:
    """The rules of the groups that bind one crawler, and the pace that these groups request.

    Immutable.

        >>> from polite import parse
        >>> rules = parse("User-agent: *\\nDisallow: /*?sort=\\nCrawl-delay: 2").rules_for("ExampleBot")
        >>> rules.allows("/list?sort=up"), rules.allows("/list"), rules.crawl_delay
        (False, True, 2.0)

    Attributes:
        group: the name under which the crawler was found, "*", or None.
        dialect: how the rules are read.
        crawl_delay: seconds, or None.
        request_rates: the rates of the groups.
        visit_time: the hours at which the site may be visited, or None.
        access: the result of a robots fetch that alone allows or denies everything, or None.
        cause: the reason of that result, or None.
        quick_length: a decision about a path of up to this many octets takes about 0.6 ms at most, whatever rules and path contain.
            A longer path takes longer in proportion. Exact after `prepare`, and lower before; `sys.maxsize` if no rule's cost
            grows with the path.
    """

    __slots__ = (
        *(
            "access",
            "cause",
            "crawl_delay",
            "dialect",
            "group",
            "quick_length",
            "request_rates",
            "visit_time",
        ),
        *("_exempt", "_grammar", "_marks", "_otherwise", "_paths", "_reason"),
        *("_certain", "_index", "_only_disallows", "_order", "_shapes", "_starts"),
        *("_lifetime", "_made", "_memory"),
    )

    def __init__(
        self,
        paths: Sequence[str],
        marks: Sequence[int] = b"",
        *,
        group: str | None,
        dialect: Dialect,
        crawl_delay: float | None = None,
        request_rates: tuple[RequestRate, ...] = (),
        visit_time: VisitTime | None = None,
        otherwise: bool = True,
        reason: Reason | None = None,
        access: FetchResult | None = None,
        cause: Reason | None = None,
    ) -> None:
        """Hold rules that were read, or the result of a robots fetch that alone decides.

        Args:
            paths: one for each rule, one character per octet.
            marks: for each rule its line, doubled, plus one if it allows.
            group: the name under which the crawler was found.
            dialect: how the rules are read.
            crawl_delay: seconds, or None.
            request_rates: the rates of the groups.
            visit_time: the hours of the groups.
            otherwise: whether a path that no rule matches is allowed.
            reason: the reason of that. By default, no rule or no group.
            access: the result of the fetch, if it alone decides.
            cause: why the fetch had that result. By default the result's own reason.
        """
        self.group: str | None = group
        self.dialect: Dialect = dialect
        self.crawl_delay: float | None = crawl_delay
        self.request_rates: tuple[RequestRate, ...] = request_rates
        self.visit_time: VisitTime | None = visit_time
        self.access: FetchResult | None = access
        self.cause: Reason | None = access.reason if cause is None and access is not None else cause
        # A tuple: the garbage collector does not track tuples of texts.
        self._paths = tuple(paths)
        # A crawler keeps thousands of rule sets, most of them with few rules.
        self._marks = compact(marks) if isinstance(marks, list) else marks
        self._otherwise = otherwise
        self._reason = reason or (Reason.NO_GROUP if group is None else Reason.NO_RULE)
        self._exempt = "/robots.txt" if dialect.exempts_robots_txt else None
        self._grammar = grammar(dialect)
        # Until the first decision, any rule may forbid any path.
        self._install(NOT_BUILT if paths else ALL_ALLOWED if otherwise else ALL_DENIED)
        self._index: RuleIndex | None = None
        # Whether there is no Allow. Then any match decides, whichever rule it is. Set with the prefilter.
        self._only_disallows = False
        self.quick_length: int = _quick_length(_STEPS_OF_ANY_RULE * len(paths)) if paths else maxsize
        self._order: Sequence[int] = ()
        self._made = _NONE_MADE
        self._memory = 0  # not estimated yet
        self._lifetime: Lifetime | None = None

    @classmethod
    def allow_all(
        cls,
        reason: Reason,
        *,
        access: FetchResult | None = None,
        cause: Reason | None = None,
        dialect: Dialect = RFC9309,
    ) -> "RuleSet":
        """Return rules that allow everything because of the result of a robots fetch.

        Args:
            reason: The reason of all their decisions.
            access: The result of the fetch.
            cause: Why the fetch had that result. By default the result's own reason.
            dialect: The dialect of the decisions.
        """
        return cls((), group=None, dialect=dialect, reason=reason, access=access, cause=cause)

    @classmethod
    def deny_all(
        cls,
        reason: Reason,
        *,
        access: FetchResult | None = None,
        cause: Reason | None = None,
        dialect: Dialect = RFC9309,
    ) -> "RuleSet":
        """Return rules that deny everything but /robots.txt, if the dialect exempts that.

        Args:
            reason: The reason of all their decisions.
            access: The result of the fetch.
            cause: Why the fetch had that result. By default the result's own reason.
            dialect: The dialect of the decisions.
        """
        return cls(
            (), group=None, dialect=dialect, otherwise=False, reason=reason, access=access, cause=cause
        )

    def __reduce__(self) -> tuple[object, ...]:
        # What is built from the rules is left out, and built again.
        names = ("group", "dialect", "crawl_delay", "request_rates", "visit_time", "access", "cause")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given |= {"otherwise": self._otherwise, "reason": self._reason}
        return partial(RuleSet, **given), (self._paths, self._marks)

    def __len__(self) -> int:
        """Return the number of rules, those without a path included."""
        return len(self._paths)

    def __bool__(self) -> bool:
        return True

    def read_as(self, dialect: Dialect) -> "RuleSet":
        """Return the same rules, compared with paths as another dialect does."""
        return RuleSet(self._paths, self._marks, group=self.group, dialect=dialect)

    @property
    def content(self) -> tuple[tuple[str, ...], list[int]]:
        """The rules' paths, and for each 1 if it allows, else 0, in the order of the file.

        Line numbers are left out.
        """
        return self._paths, [mark & 1 for mark in self._marks]

    def repeats(self, other: "RuleSet") -> bool:
        """Return whether these rules and the `other` ones are the same, in the same order. Then both decide alike."""
        return self.content == other.content

    @property
    def memory(self) -> int:
        """The approximate octets in memory once it was used, caches included. Rather too high."""
        if self._memory == 0 and self.access is not None:
            self._memory = _OCTETS_WITHOUT_FILE
        elif self._memory == 0:
            text = "".join(self._paths)
            wild = min(len(self._paths), text.count("*"))
            made = min(wild, MAX_CACHED_RULES) * _OCTETS_OF_A_MADE_RULE
            per_rule = len(self._paths) * _OCTETS_OF_A_RULE + wild * _OCTETS_OF_A_WILD_RULE
            self._memory = _OCTETS_OF_A_SET + per_rule + made + len(text) * _OCTETS_OF_AN_OCTET
        return self._memory

    @property
    def lifetime(self) -> Lifetime:
        """An object that ends with the rules, for weak references: compiled rules can have none."""
        if self._lifetime is None:
            self._lifetime = Lifetime()
        return self._lifetime

    @property
    def request_rate(self) -> RequestRate | None:
        """The slowest Request-rate, at whatever hours it applies. `request_rates` has all."""
        return slowest(self.request_rates)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order of the file. Rules without a path decide nothing (M2)."""
        return tuple(map(self._rule, range(len(self._paths))))

    def allows(self, path: str) -> bool:
        """Return whether a path with query may be fetched.

        Raises InvalidURL unless it starts with "/".
        """
        # Hot path: inlines `_normal`. This is called for each page of a crawl.
        if path[:1] != "/":
            raise InvalidURL(path, 'a path starts with "/"', 0)
        if "%" in path or "#" in path or not path.isascii():
            path = self._grammar.path(path)
        if path.startswith(self._starts):
            return path == self._exempt if self._certain else self._allows_by_index(path)
        for needle, shape in self._shapes:
            if needle in path and shape_matches(shape, path):
                return path == self._exempt if self._certain else self._allows_by_index(path)
        return True

    def decide(self, path: str) -> Decision:
        """Decide about a path with query. Raises InvalidURL unless it starts with "/"."""
        normal = self._normal(path)
        if normal == self._exempt:
            return _decision(Decision, (path, True, Reason.ROBOTS_PATH, None, self))
        if self._index is None and self._matches_nothing(normal):
            return _decision(Decision, (path, self._otherwise, self._reason, None, self))
        index = self._index or self._indexed()
        rank = index.strongest(normal)
        if rank == index.none:
            return _decision(Decision, (path, self._otherwise, self._reason, None, self))
        rule = self._rule_of_rank(rank)
        return _decision(Decision, (path, rule[0], Reason.RULE, rule, self))

    def prepare(self) -> "RuleSet":
        """Build now what the first decision would build; slow for a large file. Returns itself."""
        if self._paths:
            if self._starts is NOT_BUILT.starts:
                self._install(self._build_prefilter())
            if self._index is None:
                self._indexed()
        return self

    def allows_once(self, path: str) -> bool:
        """Return what `allows` returns, without an index: faster for a few paths only."""
        if self._normal(path) == self._exempt:
            return True
        best = next(iter(self._matching(path)), None)
        return self._otherwise if best is None else best.precedence & 1 == 1

    def reading(self, path: str) -> tuple[object, ...]:
        """Return all that the verdict about a path depends on. Equal readings have equal verdicts. No part of the public API."""
        normal = self._normal(path)
        _, texts, precedences = _ranked(self._paths, self._marks, self._grammar)
        together = "".join(texts)
        wild = self._grammar.has_wildcards and ("*" in together or "$" in together)
        specials = self._grammar.plain_specials and "%2" in together
        return normal, tuple(texts), tuple(precedences), wild, specials, normal == self._exempt

    def matching(self, path: str) -> tuple[Rule, ...]:
        """Return all rules that match a path, the strongest first."""
        return tuple(dict.fromkeys(self._rule(match.position) for match in self._matching(path)))

    def undefined(self, path: str) -> bool:
        """Return whether the verdict about a path depends on the undefined order of a wildcard rule (P3).

        Rules without wildcards have an order. A wildcard rule that opposes their verdict makes it uncertain; so do two
        opposed wildcard rules alone. If the dialect defines ties, a tie is certain (P2). Tries each rule.
        """
        return self._conflict(path) is not None

    def conflict(self, path: str) -> Rule | None:
        """Return the strongest rule against the verdict if that is `undefined`, else None.

        Also None if finding it would take more than a few milliseconds: for many or long rules, or a long path.
        """
        if len(self._paths) > _MOST_TRIED or sum(map(len, self._paths)) > _MOST_TEXT:
            return None
        if len(self._paths) * len(path) * _STEPS_OF_ANY_RULE > _MOST_STEPS:
            return None
        return self._conflict(path)

    def _conflict(self, path: str) -> Rule | None:
        conflict = self.dialect.wildcard_conflict
        if conflict is WildcardConflict.DEFINED or len({mark & 1 for mark in self._marks}) < 2:
            return None
        if not (matching := self._matching(path)):
            return None
        best = next((each for each in matching if not _has_wildcard(each.matcher)), matching[0])
        if not any(
            _has_wildcard(matcher)
            and (precedence ^ best[0]) & 1
            and (conflict is WildcardConflict.UNDEFINED or precedence >> 1 != best[0] >> 1)
            for precedence, matcher, _ in matching
        ):
            return None
        opposed = next(each for each in matching if (each.precedence ^ matching[0].precedence) & 1)
        return self._rule(opposed.position)

    def _normal(self, path: str) -> str:
        if path[:1] != "/":
            raise InvalidURL(path, 'a path starts with "/"', 0)
        if "%" in path or "#" in path or not path.isascii():
            return self._grammar.path(path)
        return path

    def _matches_nothing(self, path: str) -> bool:
        """Return whether the prefilter shows that no rule matches a path in normal form.

        The first decision of many a file is its only one, and to build an index costs as much as to read the file.
        """
        if not self._paths:
            return True
        if self._starts is NOT_BUILT.starts:
            self._install(self._build_prefilter())
        if not self._only_disallows or path.startswith(self._starts):
            return False
        return not any(shape_matches(shape, path) for _, shape in self._shapes)

    def _allows_by_index(self, path: str) -> bool:
        """Decide about a path in normal form that the prefilter did not pass."""
        if path == self._exempt:
            return True
        if self._starts is NOT_BUILT.starts:
            # Many files are read and never used, so the prefilter is built now.
            self._install(self._build_prefilter())
            return self.allows(path)
        index = self._index or self._indexed()
        rank = index.strongest(path, any_will_do=self._only_disallows)
        return self._otherwise if rank == index.none else self._marks[self._order[rank]] & 1 == 1

    def _install(self, made: Prefilter) -> None:
        # In this order: another thread may read these, and `_starts` tells whether the prefilter was built.
        self._shapes = made.shapes
        self._starts = made.starts
        self._certain = made.certain

    def _build_prefilter(self) -> Prefilter:
        self._paths = self._grammar.shared(self._paths)
        if len(self._paths) > _MANY_RULES and "" not in self._paths:
            # The same as below, without a list of them.
            allowing = sum([mark & 1 for mark in self._marks])
            self._only_disallows = not allowing
            if len(self._paths) - allowing > MOST_RULES:
                return PASSES_NOTHING
        forbidding = [p for p, mark in zip(self._paths, self._marks, strict=True) if p and not mark & 1]
        self._only_disallows = len(forbidding) == len(self._paths) - self._paths.count("")
        if not forbidding:
            return ALL_ALLOWED
        if self._grammar.rereads(forbidding):
            forbidding = [each for path in forbidding for each in self._grammar.readings(path, allows=False)]
        if len(forbidding) > MOST_RULES:
            return PASSES_NOTHING
        made = build_prefilter(self._grammar.matchers(forbidding), certain=self._only_disallows)
        if made is not PASSES_NOTHING and self._index is None and len(self._paths) <= 2 * MOST_RULES:
            wild = sum("*" in path or "$" in path for path in self._paths)
            self.quick_length = _quick_length(STEPS_OF_A_RULE * wild)
        return made

    def _indexed(self) -> RuleIndex:
        """Build the index: the longest rule first, then Allow, then the order of the file (P1, P2 and RFC 9309, 2.2.2)."""
        positions, texts, precedences = _ranked(self._paths, self._marks, self._grammar)
        let_threads_switch()
        # The sort is stable, so rules of equal precedence stay in the order of the file.
        order = sorted(range(len(texts)), key=precedences.__getitem__, reverse=True)
        let_threads_switch()
        # A range is its own positions. `map` takes half the time of a comprehension.
        positions = order if isinstance(positions, range) else list(map(positions.__getitem__, order))
        texts = list(map(texts.__getitem__, order))
        let_threads_switch()
        ranked = dict.fromkeys(texts)
        if len(ranked) < len(texts):
            # Of equal rules the first one decides.
            strongest = dict(zip(reversed(texts), reversed(positions), strict=True))
            positions = [strongest[text] for text in ranked]
        self._order = compact(list(positions))
        self._index = index = RuleIndex(tuple(ranked), self._grammar)
        self.quick_length = _quick_length(index.steps)
        return index

    def _matching(self, path: str) -> list[Match]:
        """Return the rules that match a path in normal form, the strongest first. Tries each rule once, and builds no index."""
        positions, texts, precedences = _ranked(self._paths, self._marks, self._grammar)
        normal = self._normal(path)
        # A hostile file may repeat one rule a thousand times.
        fitting = {text: _matcher(text, self._grammar, normal) for text in dict.fromkeys(texts)}
        found = [
            Match(precedence, matcher, position)
            for position, text, precedence in zip(positions, texts, precedences, strict=True)
            if (matcher := fitting[text]) is not None
        ]
        return sorted(found, key=lambda match: match.precedence, reverse=True)

    def _rule_of_rank(self, rank: int) -> Rule:
        """Return the rule of a rank. Cached: only few rules ever decide."""
        rule = self._made.get(rank)
        if rule is None:
            rule = self._rule(self._order[rank])
            if self._made:
                self._made[rank] = rule
            else:
                self._made = {rank: rule}
        return rule

    def _rule(self, position: int) -> Rule:
        mark = self._marks[position]
        return Rule(mark & 1 == 1, readable(self._paths[position]), mark >> 1)


def _quick_length(steps: int) -> int:
    """Return how long a path may be for a quick decision that takes so many steps for each of its octets."""
    return _QUICK // steps + 1 if steps else maxsize


def _has_wildcard(matcher: Matcher) -> bool:
    return isinstance(matcher, tuple) and bool(matcher[1])


_decision = tuple.__new__
