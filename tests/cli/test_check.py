"""`polite check`: with a file, with a site, as text and as objects, and for many agents."""

import json
import sys
import tracemalloc

import pytest

import polite
from polite.cli.check import as_object, as_text, wants_colour
from polite.cli.main import main
from polite.robots.result import Unreachable
from tests.support import Terminal


@pytest.mark.parametrize(
    ("urls", "status"),
    [
        (["http://x/yes"], 0),
        (["http://x/yes", "http://x/no"], 1),
        (["http://x/no", "ex ample"], 2),
        (["http://x/no/but"], 0),
        (["/no"], 1),
    ],
)
def test_the_status_is_that_of_the_gravest_answer(urls, status, rules):
    assert main(["check", "--robots", rules, *urls]) == status


def test_each_url_has_a_line_in_the_order_asked(rules, capsys):
    main(["check", "--robots", rules, "http://x/no", "http://x/yes", "nonsense", "http://x/no/but"])

    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["disallowed", "allowed", "invalid", "allowed"]


def test_a_file_of_rules_is_read_for_the_agent_and_in_the_dialect(rules):
    assert main(["check", "--robots", rules, "--agent", "OtherBot/2", "/yes"]) == 1
    assert main(["check", "--robots", rules, "--dialect", "classic", "/no/but"]) == 1


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


def test_octets_that_are_not_utf8_spoil_their_own_line_only(rules, feed, capsys):
    feed(b"http://x/\xff\nhttp://x/yes\n")

    assert main(["check", "--robots", rules, "--json", "-"]) == 2
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert "it is not UTF-8 (at character 9)" in first["error"]
    assert second["allowed"] is True


@pytest.mark.parametrize("end", [b"a", b" "])
def test_a_line_without_an_end_is_no_url(end, rules, feed, capsys):
    feed(b"http://x/yes" + end * 300_000 + b"\nhttp://x/yes\n")

    assert main(["check", "--robots", rules, "-"]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert "longer than 262144 octets" in first
    assert len(first) < 1_000
    assert second.startswith("allowed")


ROBOTS = polite.parse("User-agent: *\nDisallow: /no\nAllow: /no/b\n")
UNREACHABLE = polite.RuleSet.deny_all(
    polite.Reason.UNREACHABLE, access=Unreachable(polite.Reason.TIMEOUT, "http://x/robots.txt")
)


def test_an_object_names_the_rule_and_its_line():
    answer = ROBOTS.decide("Bot", "http://x/no")

    assert as_object("http://x/no", answer) == {
        "url": "http://x/no",
        "allowed": False,
        "reason": "RULE",
        "cause": None,
        "rule": "Disallow: /no",
        "line": 2,
        "undefined": False,
    }


def test_the_url_of_an_object_is_whole_canonical_and_without_credentials():
    url = f"http://me:secret@X.test:80/{'a' * 500}"

    assert as_object(url, ROBOTS.decide("Bot", url))["url"] == f"http://x.test/{'a' * 500}"


def test_only_the_verdict_is_coloured():
    line = as_text("http://x/no/b", ROBOTS.decide("Bot", "http://x/no/b"), coloured=True)

    assert line == "\x1b[32mallowed    \x1b[0m http://x/no/b  allowed by Allow: /no/b (line 3)"


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert wants_colour(Terminal())
    assert not wants_colour(None)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_switched_off(name, value, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)

    assert not wants_colour(Terminal())


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


def test_a_table_has_a_row_for_each_url_and_a_column_for_each_agent(many):
    status, out, _ = many(b"/no\n/b\nhttps://example.com/c\n")

    assert status == 1
    assert [line.split() for line in out.splitlines()] == [
        ["URL", "abot", "*", "bbot"],
        ["/no", "no", "6", "no", "2", "no", "6"],
        ["/b", "yes", "7", "yes", "yes", "7"],
        ["https://example.com/c", "no", "6", "yes", "no", "6"],
    ]


def test_each_cell_is_an_object_for_programs(many):
    status, out, err = many(b"/b\nnonsense\nHTTPS://me:secret@EXAMPLE.com/b\n", "--json")

    cells = [json.loads(line) for line in out.splitlines()]
    assert (status, err.count("\n")) == (2, 1)
    assert [(each["url"], each["agent"], each["line"]) for each in cells] == [
        (url, *cell)
        for url in ("/b", "https://example.com/b")
        for cell in (("ABot/1.0", 7), ("*", None), ("BBot", 7))
    ]


def test_an_order_that_the_dialect_leaves_undefined_is_marked(many, tmp_path):
    (tmp_path / "many.txt").write_bytes(b"User-agent: *\nAllow: /page\nDisallow: /*.htm\n")

    assert "no? 3" in many(b"/page.htm\n", "--dialect", "google-2019")[1]


def test_control_characters_do_not_reach_the_terminal(many):
    _, out, _ = many(b"/a\x1b[31m\n[red]/x\n", agents=b"A\xc2\x9bBot [b]\n")

    assert "\x1b" not in out
    assert "\x9b" not in out


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

    assert [line.split()[0] for line in out.splitlines()] == [
        "URL",
        "/1",
        "/2",
        "URL",
        "/3",
        "/4",
        "URL",
        "/5",
    ]


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
