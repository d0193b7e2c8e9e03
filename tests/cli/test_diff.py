"""`polite diff`: changed decisions and their agents; differences in text alone are not reported."""

import json
import tracemalloc
from pathlib import Path

import pytest

from polite.cli.main import main

OLD = b"User-agent: *\nDisallow: /a\n\nUser-agent: ABot/2\nDisallow: /\n"


@pytest.fixture
def compare(tmp_path: Path, capsys):
    """Compare OLD with a new file at some URLs. Return the status and the output."""

    def compare(new: bytes, urls: bytes, *options: str, old: bytes = OLD):
        for name, body in {"old": old, "new": new, "urls": urls}.items():
            (tmp_path / name).write_bytes(body)
        paths = [str(tmp_path / name) for name in ("old", "new", "urls")]
        status = main(["diff", paths[0], paths[1], "--urls", paths[2], *options])
        return status, *capsys.readouterr()

    return compare


def test_a_change_names_the_agent_the_url_and_both_reasons(compare):
    status, out, _ = compare(OLD.replace(b"/a", b"/b"), b"https://example.com/a\n/c\n")

    assert status == 1
    assert out.splitlines() == [
        "disallowed -> allowed  *  https://example.com/a",
        "    was disallowed by Disallow: /a (line 2)",
        "    now allowed: no rule of the group matches",
    ]


def test_every_agent_that_one_of_the_files_names_is_compared(compare):
    new = OLD.replace(b"ABot/2\nDisallow: /\n", b"NewBot\nDisallow: /a\nDisallow: /c\n")

    status, out, _ = compare(new, b"/c\n")

    assert status == 1
    assert [line.split("  ")[:2] for line in out.splitlines() if " -> " in line] == [
        ["disallowed -> allowed", "abot"],
        ["allowed -> disallowed", "newbot"],
    ]


def test_the_same_effect_in_other_words_is_no_change(compare):
    new = b"\xef\xbb\xbf# new\r\nuser-agent:abot\r\nallow:\ndisallow:/*\nuser-agent: *\ndisallow: /%61\n"

    assert compare(new, b"/\n/a\n/b\n/ab\n") == (0, "", "")


def test_agents_that_are_asked_for_are_the_only_ones(compare):
    status, out, _ = compare(b"", b"/a\n", "--agent", "*", "--agent", "ABot/3", "--dialect", "classic")

    assert status == 1
    assert [line for line in out.splitlines() if " -> " in line] == [
        "disallowed -> allowed  *  /a",
        "disallowed -> allowed  ABot/3  /a",
    ]


def test_changes_are_objects_for_programs(compare):
    _, out, _ = compare(b"", b"HTTPS://me:secret@EXAMPLE.com/a\n", "--json", "--agent", "QBot")

    change = json.loads(out)
    assert (change["url"], change["agent"]) == ("https://example.com/a", "QBot")
    assert change["before"] == {
        "allowed": False,
        "reason": "RULE",
        "cause": None,
        "rule": "Disallow: /a",
        "line": 2,
        "undefined": False,
    }
    assert change["after"]["reason"] == "NO_GROUP"


def test_a_line_that_is_no_url_spoils_itself_only(compare):
    status, out, err = compare(b"", b"nonsense\n \t\n\xff\n /a \r\n")

    assert status == 2
    assert "disallowed -> allowed  *  /a" in out
    assert [line.split(":")[0] for line in err.splitlines()] == ["polite", "polite"]


def test_the_unnamed_agent_is_named_by_no_file(compare):
    new = b"User-agent: x\nUser-agent: xx\nUser-agent: y\nDisallow: /\n"

    _, out, _ = compare(new, b"/q\n", old=b"")

    assert [line.split("  ")[1] for line in out.splitlines() if " -> " in line] == ["x", "xx", "y"]


@pytest.mark.slow("many agents")
def test_of_very_many_agents_the_first_are_compared(compare):
    many = "".join(f"User-agent: bot{number}\n" for number in range(1_200)).encode()
    endless = b"User-agent: " + b"x" * 5_000 + b"\n"

    status, out, err = compare(many + endless + b"Disallow: /\n", b"/c\n", old=b"")

    assert status == 1
    assert out.count(" -> ") == 1_000
    assert err == "polite: the files name 1200 agents; only the first 1000 are compared\n"


def one_large_group_and_many_own(agents: int, rule: str) -> bytes:
    """Each agent has the group of 600 rules for all, and one of its own."""
    names = [f"User-agent: bot{n}\n" for n in range(agents)]
    rules = "".join(f"Disallow: /{n}*x\n" for n in range(600))
    return ("".join(names) + rules + "".join(f"{name}Disallow: {rule}\n" for name in names)).encode()


@pytest.mark.slow("measures memory with a large input")
def test_memory_does_not_grow_with_the_number_of_agents(compare):
    def peak(agents: int) -> int:
        tracemalloc.start()
        status, out, _ = compare(
            one_large_group_and_many_own(agents, "/c"),
            b"/c\n",
            old=one_large_group_and_many_own(agents, "/d"),
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert status == 1
        assert out.count(" -> ") == agents
        return peak

    peak(2)  # what is made once

    assert peak(24) <= 1.25 * peak(3)


def test_many_urls_are_compared_a_batch_at_a_time(compare, monkeypatch):
    monkeypatch.setattr("polite.cli.diff._BATCH", 2)

    _, out, err = compare(b"", b"/a1\n/a2\nnonsense\n/a3\n/c\n")

    assert [line.split("  ")[1:] for line in out.splitlines() if " -> " in line] == [
        *[["abot", "/a1"], ["abot", "/a2"], ["*", "/a1"], ["*", "/a2"]],
        *[["abot", "/a3"], ["abot", "/c"], ["*", "/a3"]],
    ]
    assert err.count("\n") == 1
