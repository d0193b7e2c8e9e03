"""UserAgent: the header that is sent, and the names that a file is searched for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from polite.errors import InvalidUserAgent
from polite.robots.dialect import Dialect
from polite.robots.lines import WHITE_OR_END

_LONGEST = 2_048
_MAX_NAMES = 32
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_LETTER = re.compile(r"[A-Za-z]")
_COMPATIBLE = re.compile(r"compatible;\s*", re.IGNORECASE | re.ASCII)
_DIGITS = frozenset("0123456789")
_NAME_GOES_ON = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")


@dataclass(frozen=True, slots=True)
class UserAgent:
    """A crawler's User-Agent header and its names in robots.txt.

    See RFC 9309, 2.2.1 and RFC 9110, 10.1.5. Without `tokens`, the name is the header's first product, or the product
    that calls itself compatible with Mozilla. More general names are derived by removing what follows a hyphen:
    examplebot-news, examplebot (A3). Derived names are used only by dialects with `derives_general_names`, which the
    default dialect lacks.

        >>> agent = UserAgent("ExampleBot-News/1.0 (+https://example.com/bot)")
        >>> agent.tokens
        ('examplebot-news', 'examplebot')
        >>> UserAgent("ExampleBot/1.0", tokens=["examplebot", "oldname"]).tokens
        ('examplebot', 'oldname')

    Args:
        header: the header as it is sent.
        tokens: the names to search a file for, in this order, in every dialect.

    Attributes:
        header: the header without outer spaces.
        tokens: the names in lower case, most specific first, derived names included.
        named: the names that were not derived.

    Raises:
        InvalidUserAgent: if the header cannot be sent, or a name cannot be in a file.
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
        """Return the agent itself, or the one with this header. Raises InvalidUserAgent."""
        return agent if isinstance(agent, UserAgent) else _of_header(agent)

    def names(self, dialect: Dialect) -> tuple[str, ...]:
        """Return the names to search a file for in this dialect, in order (A3, A5)."""
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
    """Return whether a user-agent line's value names the agent (A2).

    The value must start with the whole name. Text after the name is ignored: `examplebot/1.2` and `examplebot*` name
    examplebot, `examplebots` does not. A name may contain digits, although the grammar's tokens may not (A5). A name
    that ends with a digit does not end before another digit.
    """
    if value[: len(name)].lower() != name:
        return False
    following = value[len(name) : len(name) + 1]
    return following not in _NAME_GOES_ON and not (following in _DIGITS and name[-1] in _DIGITS)


def names_all(value: str) -> bool:
    """Return whether the value is `*`, alone or followed by white space."""
    return value[:1] == "*" and value[1:2] in WHITE_OR_END


def _checked_header(header: object) -> str:
    if not isinstance(header, str):
        raise InvalidUserAgent(f"the User-Agent header must be a str, got {type(header).__name__}")
    header = header.strip(" ")
    if not header:
        raise InvalidUserAgent("the User-Agent header is empty: name your crawler and a page about it")
    if len(header) > _LONGEST:
        raise InvalidUserAgent(f"the User-Agent header has {len(header)} characters, the limit is {_LONGEST}")
    for position, character in enumerate(header):
        if not character.isprintable() or ord(character) > 0xFF:
            raise InvalidUserAgent(
                f"the User-Agent header has {character!r} at character {position}: use printable latin-1 characters only"
            )
    return header


def _checked_names(header: str, tokens: Sequence[object]) -> tuple[str, ...]:
    if isinstance(tokens, str) or len(tokens) > _MAX_NAMES:
        raise InvalidUserAgent(
            f"UserAgent: tokens must be a sequence of at most {_MAX_NAMES} names, for header {header[:80]!r}"
        )
    names: dict[str, None] = {}
    for token in tokens:
        if not isinstance(token, str) or not _NAME.fullmatch(token) or not _LETTER.search(token):
            raise InvalidUserAgent(
                f"UserAgent: tokens has {token!r}; a name has letters, digits, '_' and '-', and at least one letter"
            )
        names[token.lower()] = None
    return tuple(names)


def _product_name(header: str) -> str:
    """Return the name of the first product, or of the product that is compatible with Mozilla."""
    name = _NAME.match(header)
    if name is not None and name[0].lower() == "mozilla" and (compatible := _COMPATIBLE.search(header)):
        name = _NAME.match(header, compatible.end()) or name
    if name is None or not _LETTER.search(name[0]):
        raise InvalidUserAgent(
            f"the User-Agent header {header[:80]!r} names no product: start it with one such as ExampleBot/1.0"
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
