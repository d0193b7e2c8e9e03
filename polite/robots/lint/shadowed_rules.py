"""Shadowed rules: for every path that they match, another rule of the group wins."""

import re
from collections.abc import Iterable, Iterator

from polite.robots.decision import Rule, RuleLine, to_rule
from polite.robots.dialect import Dialect
from polite.robots.groups import Group
from polite.robots.parse import parse

# Limits, so a hostile file does not make the search long.
_MOST_RULES = 1_000
_MOST_PATHS = 5_000
_LONGEST_PATH = 300
# Characters compared: each example with each rule that has a wildcard. About 0.2 s.
_MOST_COMPARED = 20_000_000
# Stands for any run of characters. Only a `*` matches it, since no rule contains a line end.
_ANYTHING = "\n"
_NOT_ASCII = re.compile("[\x80-\xff]")


def shadowed_rules(groups: Iterable[Group], dialect: Dialect) -> Iterator[tuple[Rule, Rule]]:
    """Yield each shadowed rule, and the rule that wins instead.

    Skips groups of more than 1,000 rules, and groups whose wildcard rules would take too long.
    """
    paths = compared = 0
    for group in groups:
        if len(group.rule_lines) > _MOST_RULES:
            continue
        paths += len(group.rule_lines)
        if paths > _MOST_PATHS:
            return
        work = _comparisons(group)
        if compared + work <= _MOST_COMPARED:
            compared += work
            yield from _in_group(group, dialect)


def _comparisons(group: Group) -> int:
    paths = [path for _, path, _ in group.rule_lines if len(path) <= _LONGEST_PATH]
    return sum(map(len, paths)) * sum("*" in path for _, path, _ in group.rule_lines)


def _in_group(group: Group, dialect: Dialect) -> Iterator[tuple[Rule, Rule]]:
    alone = "user-agent:*\n" + "".join(
        f"{'allow' if allows else 'disallow'}:{path}\n" for allows, path, _ in group.rule_lines
    )
    rules = parse(alone.encode("latin-1"), dialect).rules_for("anybody")
    for position, line in enumerate(group.rule_lines):
        example = _example(line, dialect)
        winner = None if example is None else rules.decide(example).rule
        # Line 1 is the user-agent line.
        if winner is not None and winner.line != position + 2:
            yield to_rule(line), to_rule(group.rule_lines[winner.line - 2])


def _example(line: RuleLine, dialect: Dialect) -> str | None:
    """Return a path that stands for all paths which the rule matches.

    None if there is no such path, or if it is not searched.
    """
    allows, path, _ = line
    if not path or len(path) > _LONGEST_PATH:
        return None
    if allows and dialect.index_is_folder and "index.htm" in path:
        return None  # it also allows the folder
    anchored = dialect.has_wildcards and path.endswith("$")
    if anchored and dialect.dollar_is_both:
        return None  # it also matches what no example of the other reading stands for
    path = path.removesuffix("$") if anchored else path + _ANYTHING
    if dialect.has_wildcards:
        path = path.replace("*", _ANYTHING)
    if path.startswith(_ANYTHING) or (dialect.supplies_slash and not path.startswith("/")):
        path = "/" + path
    return _NOT_ASCII.sub(lambda octet: f"%{ord(octet[0]):02X}", path) if path.startswith("/") else None
