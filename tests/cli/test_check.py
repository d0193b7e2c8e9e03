"""`polite check`, with a file and with a site."""

import json

import pytest

from polite.cli.main import main


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


def test_a_file_of_rules_needs_no_network(rules, site):
    status = main(["check", "--robots", rules, "--allow-private", f"{site.origin}/no"])

    assert (status, site.asked) == (1, [])


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


def test_private_addresses_are_not_asked_unless_told(site, capsys):
    assert main(["check", "--json", f"{site.origin}/a"]) == 3
    assert json.loads(capsys.readouterr().out)["cause"] == "ADDRESS_REFUSED"
    assert site.asked == []


def test_a_bad_url_among_a_sites_spoils_itself_only(site, capsys):
    status = main(["check", "--allow-private", "nonsense", f"{site.origin}/a"])

    assert status == 2
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["invalid", "allowed"]


def test_more_urls_than_are_under_way_at_once_keep_their_order(site, feed, capsys):
    urls = [f"{site.origin}/{'no' if n % 3 else 'yes'}/{n}" for n in range(200)]
    feed("\n".join(urls).encode())

    main(["check", "--allow-private", "--json", "-"])

    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["url"] for answer in answers] == urls
    assert [answer["allowed"] for answer in answers] == [n % 3 == 0 for n in range(200)]


def test_standard_input_is_read_line_by_line(rules, feed, capsys):
    feed(b"\xef\xbb\xbfhttp://x/no\r\n\n  http://x/yes  \n")

    assert main(["check", "--robots", rules, "-"]) == 1
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == [
        "http://x/no",
        "http://x/yes",
    ]


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


def test_a_closed_standard_input_is_one_line(rules, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)

    assert main(["check", "--robots", rules, "-"]) == 2
    assert main(["check", "-"]) == 2
    assert capsys.readouterr().err == "polite: standard input: Bad file descriptor\n" * 2


def test_an_empty_standard_input_has_nothing_against_it(rules, feed):
    feed(b"")

    assert main(["check", "--robots", rules, "-"]) == 0
