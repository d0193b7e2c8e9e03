"""Signals: what a file says about the use of what is fetched, for an agent and a path."""

import time

import pytest

from polite.robots.parse import parse
from polite.robots.signals import CleanParam, Signals, read_signal, read_usage, read_values
from tests.support import calls_of

# The example of draft-ietf-aipref-attach, 3.5, in our words; and what stands beside it there.
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
ANY = "User-agent: *\n"
BOTH = "User-agent: a\nContent-Usage: search=n\nUser-agent: b\nDisallow: /x\n"
PATTERNS = f"{ANY}Content-Usage: /*.png$ train-ai=n\nContent-Usage:\t/%C3%BC\ttrain-ai=y\n"
NO_PATH = f"{ANY}Content-Usage: train-ai=n\nContent-Usage: / search=y\n"


@pytest.mark.parametrize(
    ("body", "agent", "path", "says"),
    [
        (DRAFT, "OtherBot", "/test", {"train-ai": False}),
        (DRAFT, "OtherBot", "https://example.com/ai-ok/test", {"train-ai": True}),
        (DRAFT, "ExampleBot/1.0", "/ai-ok/", {"train-ai": True}),
        # Only the group that binds the agent speaks, and no line above the first one.
        (BOTH, "a", "/", {"search": False}),
        (BOTH, "b", "/", {"search": False}),
        (BOTH, "c", "/", {}),
        (f"Content-Usage: search=n\n{ANY}", "a", "/", {}),
        # A line without a path holds where no other does.
        (NO_PATH, "x", "/", {"search": True}),
        (f"{ANY}Content-Usage: train-ai=n", "x", "/", {"train-ai": False}),
        (
            f"{ANY}Content-Usage: /a x=y\nContent-Usage: /a x=n\nContent-Usage: /a x=y",
            "x",
            "/a",
            {"x": False},
        ),
        # Paths are those of rules.
        (PATTERNS, "x", "/a.png", {"train-ai": False}),
        (PATTERNS, "x", "/a.png?", {}),
        (PATTERNS, "x", "/ü", {"train-ai": True}),
    ],
)
def test_the_longest_path_of_the_agents_group_counts(body: str, agent: str, path: str, says: dict[str, bool]):
    assert parse(body).signals(agent, path) == Signals({}, says)


def test_a_level_of_use_is_kept_and_of_equal_paths_the_strictest_counts():
    robots = parse(
        f"{ANY}Content-Signal: search=yes,ai-train=no,use=reference\nContent-Signal: use=full\n"
        "Content-Signal: /open/ use=full\nContent-Signal: /open/ search=yes\n"
    )

    assert robots.signals("x", "/").use == "reference"
    assert robots.signals("x", "/").content_signal == {"search": True, "ai-train": False}
    assert robots.signals("x", "/open/").use == "full"
    assert robots.signals_for("x").statements[0].values == {"use": "reference"}
    assert parse(DRAFT).signals("x", "/").use is None


LICENSED = """\
License: https://example.com/all.xml
User-agent: a
Disallow: /x
LICENSE: https://example.com/a.xml
license: http://example.org/ü
License: /relative.xml

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
        ("a", ["https://example.com/a.xml", "http://example.org/ü"]),
        ("b", ["https://example.com/all.xml"]),
        ("c", ["https://example.com/c-and-d.xml"]),
        ("d", ["https://example.com/c-and-d.xml"]),
        ("nobody", ["https://example.com/all.xml"]),
    ],
)
def test_the_licences_of_an_agents_group_replace_the_global_ones(agent: str, names: list[str]):
    assert list(parse(LICENSED).licenses_for(agent)) == names
    assert len(parse(LICENSED).licenses) == 4


def test_clean_params_have_parameters_and_perhaps_a_path():
    robots = parse(
        f"{ANY}Clean-param: a&b&&c /d*/e rest\nClean-param: sid\nClean-param: & /x\nClean-param:\n"
    )

    assert robots.clean_params == (CleanParam(("a", "b", "c"), "/d*/e", 2), CleanParam(("sid",), None, 3))


@pytest.mark.parametrize(
    ("unit", "limit"),
    # Calls for each line.
    [("x:\n", 6), ("<p a='b:c'>\n", 6), ("User-agent: *\nAllow:\n", 25), ("content-usagex: a\n", 30)],
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
    ("text", "says", "values"),
    [
        ("Search = YES,AI-Input=No", {"search": True, "ai-input": False}, {}),
        ("search=yes, search=no", {"search": False}, {}),
        ("search=no, search=yes", {"search": False}, {}),
        ("search=perhaps, =no, ai-train", {}, {"search": "perhaps"}),
        ("search=yes,ai-train=no,use=reference", {"search": True, "ai-train": False}, {"use": "reference"}),
        ("Use = FULL", {}, {"use": "full"}),
        ("use=immediate, use=full", {}, {"use": "immediate"}),
        ("use=full, use=anything, use=immediate", {}, {"use": "anything"}),
        ("level=b, level=a", {}, {"level": "b"}),
    ],
)
def test_content_signal_is_pairs_of_yes_and_no_and_other_values(text, says, values):
    assert (read_signal(text), read_values(text)) == (says, values)


@pytest.mark.parametrize(
    "piece", ["a", "a=", "a=y,", "a;", "a=(", 'a="', "a=(y ", "a;b=", "a=y ", "*", "1", ";b ", ', a="\\"']
)
def test_a_line_as_long_as_a_file_is_read_in_linear_time(piece: str):
    started = time.process_time()
    read_usage("a=" + piece * (512_000 // len(piece)))
    read_signal(piece * (512_000 // len(piece)))

    # 0.2 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 5.0
