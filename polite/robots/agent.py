"""UserAgent: the header that is sent, and the names that a file is searched for, most specific first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from polite.errors import InvalidUserAgent
from polite.robots.dialect import Dialect
from polite.robots.lines import WHITE

_MAX_HEADER = 2_048
_MAX_NAMES = 32
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_LETTER = re.compile(r"[A-Za-z]")
_COMPATIBLE = re.compile(r"compatible;\s*", re.IGNORECASE | re.ASCII)
_DIGITS = frozenset("0123456789")
_NAME_GOES_ON = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")


@dataclass(frozen=True, slots=True)
class UserAgent:
    """A crawler's User-Agent header and its names in robots.txt (RFC 9309, 2.2.1; RFC 9110, 10.1.5).

    Without `tokens` the name is that of the header's first product, or what calls itself compatible with Mozilla's;
    more general names are derived by leaving out what follows a hyphen: examplebot-news, examplebot (A3). Derived names are
    searched for only where the dialect `derives_general_names`, which the default does not: give `tokens` to be found by
    more names than one. Given `tokens` are used in their order, in every dialect. `tokens` are lower-case. `named` are those
    that were not derived. Raises InvalidUserAgent.
    """

    header: str
    tokens: Sequence[str] = ()
    named: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        header = _checked_header(self.header)
        given = _checked_names(header, self.tokens)
        named = given or (_product_name(header),)
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "named", named)
        object.__setattr__(self, "tokens", given or _with_general_names(named[0]))

    @staticmethod
    def of(agent: "str | UserAgent") -> "UserAgent":
        """The agent itself, or the one of that header. Raises InvalidUserAgent."""
        return agent if isinstance(agent, UserAgent) else _of_header(agent)

    def names(self, dialect: Dialect) -> tuple[str, ...]:
        """What to search a file for, in this order, by the rules of the dialect (A3, A5)."""
        names = tuple(self.tokens) if dialect.derives_general_names else self.named
        if dialect.lettered_names_only:
            names = tuple(name for name in names if _DIGITS.isdisjoint(name))
        return names

    def __str__(self) -> str:
        return self.header


@lru_cache(maxsize=128)
def _of_header(header: str) -> UserAgent:
    return UserAgent(header)


def names_agent(value: str, name: str) -> bool:
    """Whether a user-agent line's value names the agent: it starts with the name, which ends there (A2).

    Text after the name is ignored: `examplebot/1.2` and `examplebot*` name examplebot, `examplebots` does not. A name may
    hold digits, which the grammar's tokens do not (A5); one that ends with a digit does not end before another.
    """
    if value[: len(name)].lower() != name:
        return False
    following = value[len(name) : len(name) + 1]
    return following not in _NAME_GOES_ON and not (following in _DIGITS and name[-1] in _DIGITS)


def names_all(value: str) -> bool:
    """Whether the value is `*`, alone or with white space and more text behind it."""
    return value[:1] == "*" and value[1:2] in ("", *WHITE)


def _checked_header(header: object) -> str:
    if not isinstance(header, str):
        raise InvalidUserAgent(f"a User-Agent header is a string, not {type(header).__name__}")
    header = header.strip(" ")
    if not header:
        raise InvalidUserAgent("the User-Agent header is empty: name your crawler and a page about it")
    if len(header) > _MAX_HEADER:
        raise InvalidUserAgent(f"a User-Agent header of {len(header)} characters: {_MAX_HEADER} is the limit")
    for position, character in enumerate(header):
        if not character.isprintable() or ord(character) > 0xFF:
            raise InvalidUserAgent(
                f"the User-Agent header has {character!r} at character {position}: only printable latin-1 can be sent"
            )
    return header


def _checked_names(header: str, tokens: Sequence[object]) -> tuple[str, ...]:
    if isinstance(tokens, str) or len(tokens) > _MAX_NAMES:
        raise InvalidUserAgent(
            f"tokens= of {header[:80]!r}: a sequence of at most {_MAX_NAMES} names is needed"
        )
    names: dict[str, None] = {}
    for token in tokens:
        if not isinstance(token, str) or not _NAME.fullmatch(token) or not _LETTER.search(token):
            raise InvalidUserAgent(
                f"tokens= has {token!r}: a name is letters, digits, '_' and '-', with a letter"
            )
        names[token.lower()] = None
    return tuple(names)


def _product_name(header: str) -> str:
    """The name of the first product; where that is Mozilla, as of every browser, the product said to be compatible."""
    name = _NAME.match(header)
    if name is not None and name[0].lower() == "mozilla" and (compatible := _COMPATIBLE.search(header)):
        name = _NAME.match(header, compatible.end()) or name
    if name is None or not _LETTER.search(name[0]):
        raise InvalidUserAgent(
            f"the User-Agent header {header[:80]!r} starts with no product such as ExampleBot/1.0, and tokens= gives none"
        )
    return name[0].lower()


def _with_general_names(name: str) -> tuple[str, ...]:
    names = [name]
    while len(names) < _MAX_NAMES:
        shorter = names[-1].rpartition("-")[0].rstrip("-")
        if not _LETTER.search(shorter):
            break
        names.append(shorter)
    return tuple(names)
