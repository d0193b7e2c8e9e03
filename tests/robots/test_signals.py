"""Signals: what a file says about the use of what is fetched, for an agent and a path."""

import pytest

from polite.robots.parse import parse
from polite.robots.signals import CleanParam, Signals, read_signal, read_usage, read_values

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


def test_the_licences_of_an_agents_group_replace_the_global_ones():
    robots = parse(
        "License: https://example.com/all.xml\nUser-agent: a\nDisallow: /x\nLICENSE: https://example.com/a.xml\n"
        "license: http://example.org/ü\nLicense: /relative.xml\n\nUser-agent: b\nDisallow: /x\n\n"
        "User-agent: c\nLicense: https://example.com/c-and-d.xml\nUser-agent: d\nDisallow:\n"
    )

    assert list(robots.licenses_for("a")) == ["https://example.com/a.xml", "http://example.org/ü"]
    assert list(robots.licenses_for("b")) == list(robots.licenses_for("x")) == ["https://example.com/all.xml"]
    assert (
        list(robots.licenses_for("c"))
        == list(robots.licenses_for("d"))
        == ["https://example.com/c-and-d.xml"]
    )
    assert len(robots.licenses) == 4


def test_clean_params_have_parameters_and_perhaps_a_path():
    robots = parse(
        f"{ANY}Clean-param: a&b&&c /d*/e rest\nClean-param: sid\nClean-param: & /x\nClean-param:\n"
    )

    assert robots.clean_params == (CleanParam(("a", "b", "c"), "/d*/e", 2), CleanParam(("sid",), None, 3))


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
