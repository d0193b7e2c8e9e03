"""Signals: what a file says about the use of what is fetched, for an agent and a path."""

import time

import pytest

from polite.robots.parse import parse
from polite.robots.signals import CleanParam, Signals, read_signal, read_usage, read_values
from tests.support import calls_of

# The example of draft-ietf-aipref-attach, 3.5, in our words.
DRAFT = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: / train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: / train-ai=y
"""


def test_the_longest_path_counts():
    robots = parse(DRAFT)

    assert robots.signals("OtherBot", "/test").content_usage == {"train-ai": False}
    assert robots.signals("OtherBot", "https://example.com/ai-ok/test").content_usage == {"train-ai": True}


def test_the_group_that_binds_the_agent_speaks_and_no_other():
    assert parse(DRAFT).signals("ExampleBot/1.0", "/ai-ok/").content_usage == {"train-ai": True}
    assert parse("User-agent: a\nContent-Signal: search=no\n").signals("b", "/") == Signals({}, {})


def test_a_level_of_use_is_kept_and_of_equal_paths_the_strictest_counts():
    robots = parse(
        """\
User-agent: *
Content-Signal: search=yes,ai-train=no,use=reference
Content-Signal: use=full
Content-Signal: /open/ use=full
Content-Signal: /open/ search=yes
"""
    )

    assert robots.signals("x", "/").use == "reference"
    assert robots.signals("x", "/").content_signal_values == {"use": "reference"}
    assert robots.signals("x", "/open/").use == "full"
    assert robots.signals_for("x").statements[0].values == {"use": "reference"}
    assert robots.signals_for("x").statements[0].says == {"search": True, "ai-train": False}
    assert parse(DRAFT).signals("x", "/").use is None


def test_a_line_without_a_path_holds_where_no_other_does():
    robots = parse(
        "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: / search=y\nContent-Signal: /b search=no\n"
    )

    assert robots.signals("x", "/").content_usage == {"search": True}
    assert robots.signals("x", "/a").content_signal == {}
    assert robots.signals("x", "/b").content_signal == {"search": False}
    assert parse("User-agent: *\nContent-Usage: train-ai=n\n").signals("x", "/").content_usage == {
        "train-ai": False
    }


def test_paths_are_matched_as_those_of_rules_are():
    robots = parse("User-agent: *\nContent-Usage: /*.png$ train-ai=n\nContent-Usage:\t/%C3%BC\ttrain-ai=y\n")

    assert robots.signals("x", "/a.png").content_usage == {"train-ai": False}
    assert robots.signals("x", "/a.png?").content_usage == {}
    assert robots.signals("x", "/ü").content_usage == {"train-ai": True}


def test_a_line_between_two_user_agent_lines_belongs_to_both():
    robots = parse("User-agent: a\nContent-Signal: search=no\nUser-agent: b\nDisallow: /x\n")

    assert robots.signals("a", "/").search is False
    assert robots.signals("b", "/").search is False


LICENSED = """\
License: https://example.com/all.xml
User-agent: a
Disallow: /x
License: https://example.com/a.xml
License: https://example.com/a-too.xml

User-agent: b
Disallow: /x

User-agent: c
License: https://example.com/c-and-d.xml
User-agent: d
Disallow:
"""


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        ("a", ["a", "a-too"]),
        ("b", ["all"]),
        ("c", ["c-and-d"]),
        ("d", ["c-and-d"]),
        ("nobody", ["all"]),
    ],
)
def test_the_licences_of_an_agents_group_replace_the_global_ones(agent: str, names: list[str]):
    assert parse(LICENSED).licenses_for(agent) == tuple(f"https://example.com/{name}.xml" for name in names)


def test_licences_are_absolute_urls_and_all_can_be_listed():
    robots = parse(
        "License: https://example.com/l.xml\nUser-agent: a\nLICENSE: /l.xml\nlicense: http://b.example/ü\n"
    )

    assert robots.licenses == ("https://example.com/l.xml", "http://b.example/ü")
    assert robots.licenses_for("a") == ("http://b.example/ü",)


def test_clean_params_have_parameters_and_perhaps_a_path():
    robots = parse(
        "User-agent: *\nClean-param: a&b&&c /d*/e rest\nClean-param: sid\nClean-param: & /x\nClean-param:\n"
    )

    assert robots.clean_params == (CleanParam(("a", "b", "c"), "/d*/e", 2), CleanParam(("sid",), None, 3))


@pytest.mark.parametrize(
    ("unit", "limit"),
    # In parentheses what each line took while every line was taken apart, and every group with its rules was made.
    [
        ("x:\n", 6),  # (16)
        ("<p a='b:c'>\n", 6),  # (15)
        ("User-agent: *\nAllow:\n", 25),  # (55)
        ("content-usagex: a\n", 30),
    ],
)
def test_what_is_no_signal_costs_little_and_once(unit: str, limit: int):
    robots = parse(unit * 5_000)

    assert calls_of(lambda: robots.signals_for("x")) <= limit * 5_000 * unit.count("\n")
    assert calls_of(lambda: robots.signals("x", "/")) <= 100


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("train-ai=n", {"train-ai": False}),
        ("train-ai=y, search=n", {"train-ai": True, "search": False}),
        ('train-ai=n;because=law;n=1.5;s="a\\"b";t', {"train-ai": False}),
        ("train-ai;allow=n, train-ai=y", {"train-ai": True}),
        ("train-ai=y, train-ai=n", {"train-ai": False}),
        ('train-ai=y, train-ai, search=n, search="n"', {}),
        ('a=1, b=?1, c=:YQ==:, d=(y n;q=1), e=maybe, f=@1, g=%"x", h=yes, train-ai=n', {"train-ai": False}),
        ("train-ai=n, ", {}),
        ("Train-AI=n", {}),
    ],
)
def test_content_usage_is_a_dictionary_of_structured_fields(text: str, says: dict[str, bool]):
    assert read_usage(text) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("search=yes,ai-train=no,use=reference", {"use": "reference"}),
        ("Use = FULL", {"use": "full"}),
        ("use=immediate, use=full", {"use": "immediate"}),
        ("use=full, use=anything, use=immediate", {"use": "anything"}),
        ("level=b, level=a, search=maybe", {"level": "b", "search": "maybe"}),
    ],
)
def test_content_signal_keeps_values_that_are_neither_yes_nor_no(text: str, says: dict[str, str]):
    assert read_values(text) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Search = YES,AI-Input=No", {"search": True, "ai-input": False}),
        ("search=yes, search=no", {"search": False}),
        ("search=no, search=yes", {"search": False}),
        ("search=perhaps, =no, ai-train", {}),
    ],
)
def test_content_signal_is_pairs_of_yes_and_no(text: str, says: dict[str, bool]):
    assert read_signal(text) == says


@pytest.mark.parametrize(
    "piece", ["a", "a=", "a=y,", "a;", "a=(", 'a="', "a=(y ", "a;b=", "a=y ", "*", "1", ";b ", ', a="\\"']
)
def test_a_line_as_long_as_a_file_is_read_in_linear_time(piece: str):
    started = time.process_time()
    read_usage("a=" + piece * (512_000 // len(piece)))
    read_signal(piece * (512_000 // len(piece)))

    # 0.2 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 5.0
