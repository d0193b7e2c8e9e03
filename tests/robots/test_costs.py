"""Hostile files, fields and pages cost calls, or time, by their length, and few."""

import time
from collections.abc import Callable

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, RFC9309, Dialect
from polite.robots.lint.lint import lint
from polite.robots.parse import parse
from polite.robots.signals import read_signal, read_usage
from polite.terms.indexing import HTML_LIMIT, indexing
from tests.support import calls_of

Work = Callable[[str], Callable[[], object]]


def rules(body: str) -> Callable[[], object]:
    robots = parse("User-agent: *\n" + body)
    return lambda: robots.rules_for("examplebot")


def signals(body: str) -> Callable[[], object]:
    robots = parse(body)
    return lambda: robots.signals_for("x")


def explanation(body: str) -> Callable[[], object]:
    return lambda: parse("User-agent: *\n" + body).explain("x", "/" + "a" * 40)


def page(html: str) -> Callable[[], object]:
    return lambda: indexing(html=html)


@pytest.mark.parametrize(
    ("work", "unit", "most"),
    [
        *((rules, *row) for row in (("\n", 1), ("x{}:\n", 8), ("Disallow:/{}\n", 8), ("User-agent:*\n\n", 20))),
        *((rules, *row) for row in (("User-agent:*\n", 16), ("User-agent:*\nDisallow:/{}\n", 28))),
        *((signals, *row) for row in (("x:\n", 6), ("<p a='b:c'>\n", 6), ("content-usagex: a\n", 30))),
        (signals, "User-agent: *\nAllow:\n", 50),
        *((explanation, *row) for row in (("User-agent: *\nAllow:\n", 400), ("Disallow: /%61*\n", 270))),
        *((explanation, f"{line}\n", 120) for line in ("User-agent: b{}\nDisallow: /", "Disallow: /{}", "Allow: /*{}*x")),
        *((page, *row) for row in (("<!--", 8), ("<a x='", 12), ("<a>", 6), ("<meta name=a content=b>", 60))),
        (page, f"<meta name=robots content=x{' a=1' * 60}>", 1_000),
    ],
    ids=lambda each: getattr(each, "__name__", None) or str(each)[:60],
)  # fmt: skip
def test_each_line_or_piece_takes_a_few_calls(work: Work, unit: str, most: int):
    def calls(times: int) -> int:
        return calls_of(work("".join(map(unit.format, range(times)))))

    calls(1)  # what is made once
    assert calls(2_000) - calls(1_000) <= most * 1_000


def test_a_page_takes_two_calls_for_each_octet_at_most():
    assert calls_of(page("<a>" * (HTML_LIMIT // 3))) <= 2 * HTML_LIMIT + 20_000


@pytest.mark.parametrize(
    "piece", ["a", "a=", "a=y,", "a;", "a=(", 'a="', "a=(y ", "a;b=", "a=y ", "*", "1", ";b ", ', a="\\"']
)
def test_a_line_as_long_as_a_file_is_read_in_linear_time(piece: str):
    started = time.process_time()
    read_usage("a=" + piece * (512_000 // len(piece)))
    read_signal(piece * (512_000 // len(piece)))
    # 0.2 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize("dialect", [CLASSIC, RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "block",
    [
        "Disallow: /*a*b*c\n",
        "".join(f"Disallow: /*{number}*x\n" for number in range(30_000)),
        "User-agent: a\nDisallow: /*b*c*d*e*f\nDisallow: /\n",
        "".join(f"User-agent: a{number}\n" for number in range(30_000)),
        "Disallow: /" + "*a" * 2_000 + "\n",
        " <",
    ],
    ids=["wildcards", "numbered", "groups", "agents", "long paths", "mark-up"],
)
def test_mistakes_of_a_hostile_file_are_searched_in_bounded_time(block: str, dialect: Dialect) -> None:
    started = time.process_time()
    lint("User-agent: *\n" + block * (512_000 // len(block)), dialect=dialect)
    # 1 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 15.0
