"""Rereading: in each dialect the verdict that reading the file anew gives, at a fraction of the cost."""

from dataclasses import fields, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lines import text
from polite.robots.parse import parse
from polite.robots.trace import Rereading
from tests.support import calls_of, examples

NAMED = (RFC9309, GOOGLE, GOOGLE_2019, GOOGLE_2010, CLASSIC)
LITERAL = replace(RFC9309, name="literal", reserved_equal_escapes=True)
KEPT = replace(
    GOOGLE,
    name="kept",
    reserved_equal_escapes=True,
    escaped_slash_differs=True,
    colonless_values=True,
    dollar_is_both=True,
)
FIELDS = [field.name for field in fields(Dialect) if field.name != "name"]
# Each dialect with one field of another one.
VARIANTS = list(
    dict.fromkeys(
        replace(mine, name="", **{field: getattr(other, field)})
        for mine in NAMED
        for other in (*NAMED, LITERAL, KEPT)
        for field in FIELDS
    )
)
PIECES = [
    "User-agent: a-b\n",
    "User-agent: a\n",
    "User-agent: *\n",
    "useragent: a\n",
    "disalow: /a\n",
    "Disallow: ",
]
PIECES += [
    "Allow: ",
    "/a",
    "/",
    "a",
    "*",
    "$",
    "%61",
    "%2A",
    "%24",
    "%2F",
    "%3a",
    ":",
    "ü",
    " ",
    "index.htm",
    "\n",
    "\n\n",
    "\0",
    "\r",
]
PIECES += [
    "Crawl-delay: 1\n",
    "disallow-all: /\n",
    "Disallow /a\n",
    "#",
    "Allow:\n",
    "Sitemap: x\n",
    "user-agent a b\n",
]
FILES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
PATHS = st.lists(
    st.sampled_from(["a", "%61", "*", "%2A", "$", "/", "%2f", ":", "%3A", "index.html", "ü", "?", "b"]),
    max_size=4,
).map(lambda pieces: "/" + "".join(pieces))


@examples(150, fast=15)
@given(FILES, PATHS, st.sampled_from(["a-b", "a", "x"]))
@example("User-agent: *\nDisallow: %61\nDisallow:\nAllow: /aindex.htm\n", "/a", "x")
def test_every_dialect_decides_as_if_it_had_read_the_file_alone(body: str, path: str, name: str):
    octets, agent = body.encode(), UserAgent(name)
    reread = Rereading(lambda dialect: text(octets, dialect), agent)

    for dialect in VARIANTS:
        assert reread.allows(dialect, path) == parse(octets, dialect).rules_for(agent).allows(path), dialect


@settings(max_examples=150)
@given(FILES, PATHS, st.sampled_from((*NAMED, LITERAL, KEPT)))
def test_one_question_has_the_answer_of_many(body: str, path: str, dialect: Dialect):
    rules = parse("User-agent: a\n" + body, dialect).rules_for("a")

    assert rules.allows_once(path) == rules.allows(path)
    assert rules.decide(path).rule == next(iter(rules.matching(path)), None) or path == "/robots.txt"


@pytest.mark.parametrize(
    ("unit", "limit"),
    [
        # In parentheses what it was while each variant of the dialect read the file anew.
        ("User-agent: *\nAllow:\n", 400),  # (667)
        ("User-agent: x\n", 200),  # (360)
        ("User-agent: b{n}\nDisallow: /\n", 120),  # (276)
        ("Disallow: /{n}\n", 120),  # (343)
        ("f{n}: x\n", 110),  # (149)
        ("Allow: /*{n}*x\n", 120),
        ("Disallow: /a*\n", 130),
        ("Disallow: /%61*\n", 270),
        ("crawl-delay: {n}\n", 190),
    ],
)
def test_an_explanation_takes_steps_by_the_size_of_the_file_and_few(unit: str, limit: int):
    body = "User-agent: *\n" + "".join(unit.format(n=n) for n in range(2_000))
    path = "/" + "a" * 40
    few = calls_of(lambda: parse(body[: len(body) // 2]).explain("x", path))

    taken = calls_of(lambda: parse(body).explain("x", path))

    assert taken <= 2.5 * few + 5_000
    assert taken <= limit * 2_000
