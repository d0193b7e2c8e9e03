"""`polite check`: with a file, with a site, as text and as objects, and for many agents."""

import json
import sys
import tracemalloc

import pytest

from polite.cli.main import main
from tests.support import Terminal


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["http://x/yes"], 0, ["allowed"]),
        (["/no", "/yes"], 1, ["disallowed", "allowed"]),
        (["http://x/no", "ex ample", "http://x/no/but"], 2, ["disallowed", "invalid", "allowed"]),
        (["--agent", "OtherBot/2", "/yes"], 1, ["disallowed"]),
        (["--dialect", "classic", "/no/but"], 1, ["disallowed"]),
    ],
)
def test_each_url_has_a_line_and_the_status_is_that_of_the_gravest(arguments, status, words, rules, capsys):
    assert main(["check", "--robots", rules, *arguments]) == status
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == words


def test_a_site_is_asked_once_for_all_its_urls(site, capsys):
    urls = [f"{site.origin}/{name}" for name in ("a", "no", "b")]

    status = main(["check", "--allow-private", "--json", *urls])

    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 1
    assert [(a["url"], a["allowed"]) for a in answers] == list(zip(urls, (True, False, True), strict=True))
    assert site.asked == ["/robots.txt"]


def test_a_site_that_fails_is_unreachable(site, capsys):
    site.robots = (503, b"")

    assert main(["check", "--allow-private", f"{site.origin}/a"]) == 3
    assert capsys.readouterr().out.startswith("unreachable ")


def test_a_line_that_is_no_url_spoils_itself_only(rules, feed, capsys):
    feed(b"http://x/\xff\nhttp://x/yes" + b"a" * 300_000 + b"\nhttp://x/yes\n")

    assert main(["check", "--robots", rules, "--json", "-"]) == 2
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert "it is not UTF-8 (at character 9)" in first["error"]
    assert "longer than 262144 octets" in second["error"]
    assert third["allowed"] is True


def test_an_object_names_the_rule_and_has_the_canonical_url_without_credentials(rules, capsys):
    main(["check", "--robots", rules, "--json", f"http://me:secret@X.test:80/no{'a' * 500}"])

    assert json.loads(capsys.readouterr().out) == {
        "url": f"http://x.test/no{'a' * 500}",
        "allowed": False,
        "reason": "RULE",
        "cause": None,
        "rule": "Disallow: /no",
        "line": 2,
        "undefined": False,
    }


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
)
def test_only_the_verdict_is_coloured_on_a_terminal_that_wants_it(variables, coloured, rules, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())

    main(["check", "--robots", rules, "http://x/no/but"])

    word = "\x1b[32mallowed    \x1b[0m" if coloured else "allowed    "
    assert terminal.getvalue() == f"{word} http://x/no/but  allowed by Allow: /no/but (line 3)\n"


# Many agents.

GROUPS = b"User-agent: *\nDisallow: /no\n\nUser-agent: ABot\nUser-agent: BBot\nDisallow: /\nAllow: /b\n"


@pytest.fixture
def many(tmp_path, feed, capsys):
    """Check URLs for agents, by a file of rules unless an option says otherwise. Return the status and the output."""
    (tmp_path / "many.txt").write_bytes(GROUPS)

    def many(urls, *options, agents=b"ABot/1.0\n# others\n\n*\nBBot\n"):
        (tmp_path / "agents").write_bytes(agents)
        feed(urls)
        robots = [] if "--allow-private" in options else ["--robots", str(tmp_path / "many.txt")]
        status = main(["check", *robots, "--agents", str(tmp_path / "agents"), *options, "-"])
        return status, *capsys.readouterr()

    return many


def test_each_cell_is_an_object_for_programs(many):
    status, out, err = many(b"/b\nnonsense\nHTTPS://me:secret@EXAMPLE.com/b\n", "--json")

    cells = [json.loads(line) for line in out.splitlines()]
    assert (status, err.count("\n")) == (2, 1)
    assert [(each["url"], each["agent"], each["line"]) for each in cells] == [
        (url, *cell)
        for url in ("/b", "https://example.com/b")
        for cell in (("ABot/1.0", 7), ("*", None), ("BBot", 7))
    ]


def test_an_undefined_order_is_marked_and_control_characters_are_escaped(many, tmp_path):
    (tmp_path / "many.txt").write_bytes(b"User-agent: *\nAllow: /page\nDisallow: /*.htm\n")

    _, out, _ = many(b"/page.htm\n/a\x1b[31m\n/[red]x\n", "--dialect", "google-2019")

    assert "no? 3" in out
    assert "\x1b" not in out
    assert "/[red]x" in out


def test_sites_are_asked_once_for_many_agents(many, site):
    site.robots = (200, GROUPS)
    urls = "\n".join(f"{site.origin}/{name}" for name in ("no", "b", "c")).encode()

    status, out, _ = many(urls, "--allow-private", "--json")

    assert status == 1
    assert [json.loads(line)["allowed"] for line in out.splitlines()] == [
        *(False, False, False),
        *(True, True, True),
        *(False, True, False),
    ]
    assert site.asked == ["/robots.txt"]


@pytest.mark.parametrize(("robots", "status", "word"), [(404, 0, "yes"), (500, 3, "unreachable")])
def test_a_site_without_a_file_is_the_same_for_all(robots, status, word, many, site):
    site.robots = (robots, b"")

    ended, out, _ = many(f"{site.origin}/robots.txt\n{site.origin}/a".encode(), "--allow-private")

    assert (ended, out.splitlines()[-1].split()[1:]) == (status, [word] * 3)


def test_a_long_list_is_more_tables_than_one(many, monkeypatch):
    monkeypatch.setattr("polite.cli.check._MAX_CELLS", 6)

    _, out, _ = many(b"/1\n/2\n/3\n/4\n/5\n")

    words = [line.split()[0] for line in out.splitlines()]
    assert words == ["URL", "/1", "/2", "URL", "/3", "/4", "URL", "/5"]


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        (b"# none\n", "has no agent"),
        (b"ABot\n1.0\n", "line 2: "),
        (b"Bot\xff\n", "line 1: "),
        (b"\n".join(b"Bot-%s" % (b"x" * n) for n in range(1, 1_003)), "more than 1000 agents"),
    ],
)
def test_a_list_of_agents_that_is_none_is_one_line(agents, said, many):
    status, out, err = many(b"/a\n", agents=agents)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.slow("measures memory with a large input")
def test_memory_does_not_grow_with_the_number_of_agents(many, tmp_path):
    def peak(count):
        names = [f"bot{n}" for n in range(count)]
        large = "".join(f"Disallow: /{n}*x\n" for n in range(2_000))
        own = "".join(f"User-agent: {name}\nDisallow: /c\n" for name in names)
        groups = "".join(f"User-agent: {name}\n" for name in names) + large + own
        (tmp_path / "many.txt").write_text(groups)
        tracemalloc.start()
        assert many(b"/c\n", "--json", agents="\n".join(names).encode())[0] == 1
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(2)  # what is made once

    assert peak(24) <= 1.5 * peak(3)


def test_only_one_list_is_standard_input(capsys):
    assert main(["check", "--agents", "-", "-"]) == 2
    assert "only one of --agents and the URLs" in capsys.readouterr().err


def test_without_rich_the_error_says_what_to_install(many, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)

    status, _, err = many(b"/b\n")

    assert status == 2
    assert "pip install 'polite-crawl[cli]'" in err
    assert many(b"/b\n", "--json")[0] == 0
