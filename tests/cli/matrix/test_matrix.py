"""`polite matrix`: the decisions of many agents about many URLs; formats, statuses, and errors with their lines."""

import csv
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from polite.cli import matrix as grid
from polite.cli.main import main
from polite.robots.agent import UserAgent
from polite.robots.parse import parse
from tests.cli.matrix.conftest import ROBOTS


def cells(out: str) -> list[list[str]]:
    """Each line of the first table in words."""
    return [line.split() for line in out.split("\n\n", maxsplit=1)[0].splitlines()]


def test_a_table_has_a_row_for_each_url_and_a_column_for_each_agent(run):
    status, out, err = run()

    assert (status, err) == (1, "")
    assert cells(out) == [
        ["examplebot", "gptbot", "*"],
        ["https://example.com/about", "yes", "no", "yes"],
        ["https://example.com/private/press", "yes", "no", "yes"],
        ["/private/diary", "no", "no", "no"],
    ]


def test_each_cell_is_what_the_agents_rules_decide(run):
    _, out, _ = run("--json")

    found = [json.loads(line) for line in out.splitlines()]
    robots = parse(ROBOTS)

    assert len(found) == 9
    for cell in found:
        agent = "some-other-bot" if cell["agent"] == "*" else cell["agent"]
        decision = robots.decide(agent, cell["url"])
        assert cell["allowed"] is decision.allowed
        assert cell["reason"] == decision.reason.name
        assert cell["line"] == (decision.rule and decision.rule.line)


def test_json_has_one_object_for_each_cell_url_by_url(run):
    _, out, _ = run("--format", "json")

    found = [json.loads(line) for line in out.splitlines()]

    assert [(each["url"], each["agent"]) for each in found[:4]] == [
        ("https://example.com/about", "ExampleBot/1.0"),
        ("https://example.com/about", "GPTBot/1.2"),
        ("https://example.com/about", "*"),
        ("https://example.com/private/press", "ExampleBot/1.0"),
    ]
    assert list(found[1]) == ["url", "agent", "allowed", "reason", "cause", "rule", "line", "undefined"]
    assert (found[1]["rule"], found[1]["line"]) == ("Disallow: /", 7)


def test_the_rules_of_verdicts_stand_below_on_request(run):
    _, out, _ = run("--rules")

    assert cells(out)[2:] == [
        ["https://example.com/private/press", "yes", "3", "no", "7", "yes", "3"],
        ["/private/diary", "no", "2", "no", "7", "no", "2"],
    ]
    assert out.split("\n\n")[1].splitlines() == [
        "2  Disallow: /private/",
        "3  Allow: /private/press",
        "7  Disallow: /",
        "-  no rule of the group matches",
    ]


def test_csv_has_one_record_for_each_url(run):
    _, out, _ = run("--format", "csv")
    _, with_rules, _ = run("--format", "csv", "--rules")

    assert list(csv.reader(out.splitlines()))[:2] == [
        ["url", "ExampleBot/1.0", "GPTBot/1.2", "*"],
        ["https://example.com/about", "allowed", "disallowed", "allowed"],
    ]
    assert list(csv.reader(with_rules.splitlines()))[3][1:] == [
        "disallowed by Disallow: /private/ (line 2)",
        "disallowed by Disallow: / (line 7)",
        "disallowed by Disallow: /private/ (line 2)",
    ]


@pytest.mark.parametrize("width", [40, 41, 60, 80, 200])
def test_no_line_is_longer_than_the_width_and_no_cell_is_lost(width: int, run):
    agents = b"".join(b"Agent%d-with-a-rather-long-name/1.0\n" % number for number in range(30))
    urls = b"".join(b"https://example.com/%s%d\n" % (b"x" * number, number) for number in range(40))

    _, out, _ = run("--rules", "--width", str(width), agents=agents, urls=urls)

    assert max(map(len, out.splitlines())) <= width
    *tables, _, _ = out.split("\n\n")
    assert sum(len(table.splitlines()[0].split()) for table in tables) == 30
    assert all(len(table.splitlines()) == 41 for table in tables)
    assert sum(table.count(" yes") for table in tables) == 30 * 40


def test_without_a_terminal_a_line_has_80_characters_at_most(run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    _, out, _ = run(urls=b"/" + b"a" * 500 + b"/end\n")

    assert max(map(len, out.splitlines())) <= 80
    assert "aaa/end " in out


def test_the_width_of_the_terminal_counts_and_a_narrow_one_has_40(run, monkeypatch):
    for columns, least, most in (("120", 100, 120), ("10", 30, 40)):
        monkeypatch.setenv("COLUMNS", columns)
        _, out, _ = run(urls=b"/" + b"a" * 500 + b"\n")
        assert least <= max(map(len, out.splitlines())) <= most


def test_agents_of_one_name_are_told_apart_by_their_headers(run):
    _, out, _ = run(agents=b"ABot/1\nABot/2\nABot/1\n")

    assert cells(out)[0] == ["ABot/1", "ABot/2"]


def test_verdicts_have_colours_on_a_terminal_only(run, monkeypatch):
    plain = run()[1]
    monkeypatch.setattr("polite.cli.matrix.wants_colour", lambda _: True)

    coloured = run()[1]

    assert "\x1b[32myes\x1b[0m" in coloured
    assert "\x1b[31mno\x1b[0m" in coloured
    assert (
        coloured.replace("\x1b[32m", "").replace("\x1b[31m", "").replace("\x1b[0m", "").split()
        == plain.split()
    )


def test_control_characters_of_a_list_or_a_file_do_not_reach_the_terminal(run):
    _, text, _ = run("--rules", robots=b"User-agent: *\nDisallow: /\x1b[2J\n", urls=b"/\x1b[2Jx\n")
    _, table, _ = run("--format", "csv", urls=b"/\x1b[2Jx\n")

    assert "\x1b" not in text + table


def test_an_order_that_the_dialect_leaves_undefined_is_marked(run):
    _, out, _ = run(
        "--rules",
        "--dialect",
        "google-2010",
        robots=b"User-agent: *\nAllow: /page\nDisallow: /*.htm\n",
        agents=b"x\n",
        urls=b"/page.htm\n",
    )

    assert cells(out)[1] == ["/page.htm", "no?", "3"]
    assert "?  the dialect leaves the order of rules undefined" in out


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"urls": b"/about\n", "agents": b"x\n"}, 0),
        ({"urls": b"/about\n"}, 1),
        ({"urls": b"/private/a\nnonsense\n"}, 2),
        ({"agents": b"x\n123\n"}, 2),
    ],
)
def test_the_status_is_that_of_the_gravest_line(changed, status, run):
    assert run(**changed)[0] == status


def test_an_invalid_line_is_named_by_file_and_number_and_spoils_itself_only(run):
    status, out, err = run(
        agents=b"\xef\xbb\xbf# agents\n\nGPTBot/1.2\r\n123\n\xff\nABot\n",
        urls=b"\xef\xbb\xbf/a\r\n# comment\nhttp:///\n/\xff\n/b\n",
    )

    assert status == 2
    assert [line.split(": ", 2)[1] for line in err.splitlines()] == [
        "agents.txt:4",
        "agents.txt:5",
        "urls.txt:3",
        "urls.txt:4",
    ]
    assert "names no product" in err
    assert "header is not UTF-8 (at octet 0)" in err
    assert "names no host" in err
    assert cells(out) == [["gptbot", "abot"], ["/a", "no", "yes"], ["/b", "no", "yes"]]


@pytest.mark.parametrize("agents", [b"", b"# none\n"])
def test_a_list_without_agents_is_an_error(agents: bytes, run):
    status, out, err = run(agents=agents)

    assert (status, out) == (2, "")
    assert (
        err
        == "polite: --agents agents.txt has no agent: write one User-Agent header per line, or * for any other\n"
    )


@pytest.mark.parametrize("urls", [b"", b"# none\n\n"])
def test_a_list_without_urls_is_an_error(urls: bytes, run):
    status, out, err = run(urls=urls)

    assert (status, out) == (2, "")
    assert err == "polite: --urls urls.txt has no URL: write one URL, or one path of the site, per line\n"


def test_a_list_of_invalid_urls_names_each(run):
    status, out, err = run(urls=b"nonsense\n")

    assert (status, out, err.count("\n")) == (2, "", 1)


def test_too_many_agents_are_an_error_and_no_part_of_a_table(run):
    status, out, err = run(agents=b"".join(b"bot-%d\n" % number for number in range(1_001)))

    assert (status, out) == (2, "")
    assert err == "polite: --agents agents.txt has more than 1000 agents: split the list\n"


@pytest.mark.parametrize("missing", ["robots", "agents", "urls"])
def test_a_file_that_is_missing_is_one_line(missing: str, run):
    status, out, err = run(f"--{missing}", "nowhere.txt")

    assert (status, out) == (2, "")
    assert err == "polite: nowhere.txt: No such file or directory\n"


@pytest.mark.parametrize("option", ["robots", "agents", "urls"])
def test_one_of_the_inputs_may_be_standard_input(option: str, run, feed):
    expected = run()[1]
    feed(Path(f"{option}.txt").read_bytes())

    status, out, _ = run(f"--{option}", "-")

    assert (status, out) == (1, expected)


def test_an_invalid_line_of_standard_input_is_named_so(run, feed):
    feed(b"/a\nnonsense\n")

    assert run("--urls", "-")[2].startswith("polite: standard input:2: 'nonsense' ")


def test_two_inputs_cannot_be_standard_input(run):
    status, _, err = run("--urls", "-", "--agents", "-")

    assert status == 2
    assert err == "polite: only one of --robots, --agents and --urls can read standard input\n"


def test_the_rules_of_a_site_are_fetched_once_and_hold_for_its_origin_only(run, site):
    urls = f"{site.origin}/no\n/no\n{site.origin}/yes\nhttps://example.com/no\n".encode()

    status, out, err = run(
        "--robots", f"{site.origin}/any/page", "--allow-private", agents=b"a\nb\n", urls=urls
    )

    assert status == 2
    assert cells(out)[1:] == [
        [f"{site.origin}/no", "no", "no"],
        ["/no", "no", "no"],
        [f"{site.origin}/yes", "yes", "yes"],
    ]
    assert err == (
        "polite: urls.txt:4: 'https://example.com/no' is a URL of another origin: "
        f"the rules are those of {site.origin}, and hold for no other origin\n"
    )
    assert site.asked == ["/robots.txt"]


def test_a_site_without_a_file_allows_all(run, site):
    site.robots = (404, b"")

    status, out, _ = run(
        "--robots", site.origin, "--allow-private", "--rules", agents=b"a\n*\n", urls=b"/a\n"
    )

    assert status == 0
    assert cells(out)[1] == ["/a", "yes", "yes"]
    assert "-  the site has no robots.txt (RFC 9309, 2.3.1.3)" in out


def test_a_site_that_fails_is_unreachable_and_has_no_table(run, site):
    site.robots = (503, b"")

    status, out, err = run("--robots", site.origin, "--allow-private")

    assert (status, out) == (3, "")
    assert err == f"polite: {site.origin}/robots.txt: robots.txt is unreachable: the server returned 5xx\n"


def test_a_private_address_is_blocked_unless_permitted(run, site):
    status, _, err = run("--robots", site.origin)

    assert (status, site.asked) == (3, [])
    assert "use --allow-private to permit it" in err


def test_a_list_of_any_length_is_decided_in_batches(run, monkeypatch):
    urls = b"".join(b"/private/%d\n" % number for number in range(25))
    whole = run("--json", urls=urls)[1]
    monkeypatch.setattr(grid, "MAX_CELLS", 30)

    text, parts = run(urls=urls)[1], run("--json", urls=urls)[1]

    assert parts == whole
    assert [len(table.splitlines()) for table in text.rstrip("\n").split("\n\n")] == [11, 11, 6]


def test_a_batch_has_at_least_one_url_and_a_bounded_number_of_cells():
    assert grid.batch_rows(1) == 10_000
    assert grid.batch_rows(1_000) == 500
    assert grid.batch_rows(10**9) == 1


@pytest.mark.slow("measures memory with a large input")
def test_memory_does_not_grow_with_the_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grid, "MAX_CELLS", 4_000)
    Path("r").write_bytes(ROBOTS)
    Path("a").write_bytes(b"a\nb\nGPTBot\n*\n")
    peaks = []
    for count in (2_000, 20_000):
        Path("u").write_bytes(b"".join(b"/private/%d\n" % number for number in range(count)))
        with Path("out").open("w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            tracemalloc.start()
            main(["matrix", "--robots", "r", "--agents", "a", "--urls", "u"])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < 1.2 * peaks[0] + 100_000


def test_agents_of_one_group_share_its_rules_and_its_verdicts(monkeypatch):
    robots = parse(ROBOTS)
    bindings = robots.bindings()
    columns = [grid.Column(name, UserAgent(name)) for name in ("a", "b", "c", "gptbot")]

    made = grid.Grid(
        columns, [grid.Row("/a", "/a")], lambda agent: bindings.rules_for(agent or UserAgent("x"))
    )

    assert made.cell(0, 0) is made.cell(0, 2)
    assert len(list(made.verdicts())) == 2
