"""`polite check`, `explain`, `diff` and `lint`: of files, of standard input, and of sites."""

import json
import re
import sys

import pytest

from polite.cli.main import main


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


GROUPS = b"User-agent: *\nDisallow: /no\n\nUser-agent: ABot\nUser-agent: BBot\nDisallow: /\nAllow: /b\n"


@pytest.fixture
def many(tmp_path, feed, capsys):
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


def test_only_one_list_is_standard_input(capsys):
    assert main(["check", "--agents", "-", "-"]) == 2
    assert "only one of --agents and the URLs" in capsys.readouterr().err


def test_without_rich_the_error_says_what_to_install(many, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    status, _, err = many(b"/b\n")
    assert status == 2
    assert "pip install 'polite-crawl[cli]'" in err
    assert many(b"/b\n", "--json")[0] == 0


# polite explain


def test_a_file_explains_the_rule_and_what_it_overruled(rules, capsys):
    assert main(["explain", "--robots", rules, "http://me:secret@x/no/but"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "http://x/no/but",
        "  allowed by Allow: /no/but (line 3)",
        "  Crawl-delay: none",
        "  group: * (line 1), since none is for polite-cli",
        "  decides: Allow: /no/but (line 3), column 8, 7 octets",
        "  overruled: Disallow: /no (line 2), column 11, 3 octets",
        "  dialect: --dialect classic would reverse this decision",
        "        1 | User-agent: *",
        "        2 | Disallow: /no",
        "  >     3 | Allow: /no/but",
    ]


def test_a_site_is_explained_with_its_delay_and_turn_and_without_python_names(site, capsys):
    site.robots = (
        200,
        b"User-agent: *\nDisallow: /*.htm\nAllow: /a\nCrawl-delay: 900\nRequest-rate: 1/7000\n",
    )

    assert main(["explain", "--allow-private", f"{site.origin}/a.htm"]) == 1

    out = capsys.readouterr().out
    assert out.count("disallowed by Disallow: /*.htm (line 2)") == 1
    assert "300 s between requests" in out
    assert "turn: in" in out
    assert "  >     2 | Disallow: /*.htm\n" in out
    assert not re.search(r"Policy|open_gate|[a-z]+_[a-z]+", out)


def test_no_option_is_named_that_explain_lacks(site, capsys):
    site.robots = (404, b"")
    assert main(["explain", "--allow-private", site.origin]) == 0
    assert "delay: 1 s between requests (min delay 1 s)" in capsys.readouterr().out


def test_the_uses_of_the_page_that_robots_txt_names_are_shown_refusals_first(tmp_path, capsys):
    path = tmp_path / "robots.txt"
    path.write_bytes(
        b"License: https://me:secret@example.com/l.xml\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\n"
        b"Content-Usage: /a ai-use=no\nContent-Usage: /b search=n\n"
    )

    assert main(["explain", "--robots", str(path), "/a"]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "  use: ai-train: refused by Content-Signal: search=yes, ai-train=no (robots.txt, line 3)",
        "  use: ai-input: refused by Content-Usage: /a ai-use=no (robots.txt, line 4), which is no valid statement",
        "  use: search: allowed by Content-Signal: search=yes, ai-train=no (robots.txt, line 3)",
        "  licence: https://example.com/l.xml (line 1)",
    ]


# polite diff

OLD = b"User-agent: *\nDisallow: /a\n\nUser-agent: ABot/2\nDisallow: /\n"


@pytest.fixture
def compare(tmp_path, capsys):
    def compare(new, urls, *options, old=OLD):
        for name, body in {"old": old, "new": new, "urls": urls}.items():
            (tmp_path / name).write_bytes(body)
        paths = [str(tmp_path / name) for name in ("old", "new", "urls")]
        return main(["diff", paths[0], paths[1], "--urls", paths[2], *options]), *capsys.readouterr()

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


def test_a_line_of_diff_that_is_no_url_spoils_itself_only(compare):
    status, out, err = compare(b"", b"nonsense\n \t\n\xff\n /a \r\n")
    assert status == 2
    assert "disallowed -> allowed  *  /a" in out
    assert [line.split(":")[0] for line in err.splitlines()] == ["polite", "polite"]


# polite lint

MISTYPED = b"User-agent: *\nDissallow: /x\nDisallow:\n"


def test_findings_are_objects_for_programs(feed, capsys):
    feed(MISTYPED)
    assert main(["lint", "--json", "-"]) == 1
    finding = json.loads(capsys.readouterr().out)
    assert (finding["line"], finding["code"]) == (2, "X7")
    assert finding.keys() == {"line", "code", "message", "hint"}


def test_what_lies_beyond_the_cap_of_a_site_is_seen_up_to_a_limit(site, capsys):
    site.robots = (200, b"User-agent: *\nDisallow:\n" + b"# filler\n" * 60_000)
    for source in (f"{site.origin}/some/page", "/dev/zero"):
        assert main(["lint", "--allow-private", source]) == 1
        assert " X8 " in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "sarif"])
def test_a_file_is_named_by_its_final_url_without_a_password(form, site, capsys):
    site.robots = (200, MISTYPED)
    site.redirects["/robots.txt"] = "/files/robots-en.txt"
    source = site.origin.replace("//", "//me:secret@")
    assert main(["lint", "--allow-private", "--format", form, source]) == 1
    out, there = capsys.readouterr().out, f"{site.origin}/files/robots-en.txt"
    assert (f'"uri": "{there}"' if form == "sarif" else f"{there}:2: X7") in out
    assert "secret" not in out


@pytest.mark.parametrize(
    ("host", "options", "says"),
    [
        (None, ["--allow-private"], "no robots.txt to check: the server returned 4xx\n"),
        ("127.0.0.1:9", [], "is not public, so it is blocked; use --allow-private to permit it\n"),
        ("169.254.169.254", ["--allow-private"], "is blocked and never fetched: no option permits it\n"),
    ],
)
def test_a_site_without_a_file_has_nothing_to_look_at(host, options, says, site, capsys):
    site.robots = (404, b"")
    assert main(["lint", *options, site.origin if host is None else f"http://{host}/"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.endswith(says)


def test_sarif_is_one_document_for_code_hosts(tmp_path, capsys):
    path = tmp_path / "my robots.txt"
    path.write_bytes(MISTYPED)

    assert main(["lint", "--format", "sarif", str(path)]) == 1
    document = json.loads(capsys.readouterr().out)
    run = document["runs"][0]
    result = run["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert (document["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "polite")
    assert (result["ruleId"], result["level"]) == ("X7", "warning")
    assert result["ruleId"] in [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert place["artifactLocation"]["uri"].endswith("/my%20robots.txt")
    assert place["region"] == {"startLine": 2}
