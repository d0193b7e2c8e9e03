"""`polite diff`: changed decisions and their agents; differences in text alone are not reported."""

import json
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


def test_every_agent_that_one_of_the_files_names_is_compared(compare):
    new = OLD.replace(b"ABot/2\nDisallow: /\n", b"x\nUser-agent: xx\nDisallow: /a\nDisallow: /c\n")

    status, out, _ = compare(new, b"/c\n")

    # None of the files names `*`: its agent has a name that is longer than `xx`.
    assert status == 1
    assert [line.split("  ")[:2] for line in out.splitlines() if " -> " in line] == [
        ["disallowed -> allowed", "abot"],
        ["allowed -> disallowed", "x"],
        ["allowed -> disallowed", "xx"],
    ]


def test_the_same_effect_in_other_words_is_no_change(compare):
    new = b"\xef\xbb\xbf# new\r\nuser-agent:abot\r\nallow:\ndisallow:/*\nuser-agent: *\ndisallow: /%61\n"

    assert compare(new, b"/\n/a\n/b\n/ab\n") == (0, "", "")


def test_changes_are_objects_for_programs(compare):
    _, out, _ = compare(
        b"", b"HTTPS://me:secret@EXAMPLE.com/a\n", "--json", "--agent", "QBot", "--dialect", "classic"
    )

    change = json.loads(out)
    assert (change["url"], change["agent"]) == ("https://example.com/a", "QBot")
    assert (change["before"]["rule"], change["before"]["line"]) == ("Disallow: /a", 2)
    assert change["after"]["reason"] == "NO_GROUP"


def test_a_line_that_is_no_url_spoils_itself_only(compare):
    status, out, err = compare(b"", b"nonsense\n \t\n\xff\n /a \r\n")

    assert status == 2
    assert "disallowed -> allowed  *  /a" in out
    assert [line.split(":")[0] for line in err.splitlines()] == ["polite", "polite"]


@pytest.mark.slow("many agents")
def test_of_very_many_agents_the_first_are_compared(compare):
    many = "".join(f"User-agent: bot{number}\n" for number in range(1_200)).encode()
    endless = b"User-agent: " + b"x" * 5_000 + b"\n"

    status, out, err = compare(many + endless + b"Disallow: /\n", b"/c\n", old=b"")

    assert (status, out.count(" -> ")) == (1, 1_000)
    assert "name 1200 agents; only the first 1000 are compared" in err


def test_many_urls_are_compared_a_batch_at_a_time(compare, monkeypatch):
    monkeypatch.setattr("polite.cli.diff._BATCH", 2)

    _, out, err = compare(b"", b"/a1\n/a2\nnonsense\n/a3\n/c\n")

    assert [line.split("  ")[1:] for line in out.splitlines() if " -> " in line] == [
        *[["abot", "/a1"], ["abot", "/a2"], ["*", "/a1"], ["*", "/a2"]],
        *[["abot", "/a3"], ["abot", "/c"], ["*", "/a3"]],
    ]
    assert err.count("\n") == 1
