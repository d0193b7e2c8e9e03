"""`polite explain`, by a file and by a site."""

from polite.cli.main import main


def test_a_file_explains_the_rule_and_what_it_overruled(rules, capsys):
    status = main(["explain", "--robots", rules, "http://me:secret@x/no/but"])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "http://x/no/but",
        "  allowed by Allow: /no/but (line 3)",
        "  group: *; Crawl-delay: none",
        "  overruled: Disallow: /no (line 2)",
    ]


def test_a_delay_of_nothing_is_not_the_same_as_none(rules, capsys):
    assert main(["explain", "--robots", rules, "--agent", "OtherBot", "http://x/"]) == 1

    assert "group: otherbot; Crawl-delay: 0 s" in capsys.readouterr().out


def test_a_file_without_groups_binds_nobody(tmp_path, capsys):
    (tmp_path / "empty").touch()

    assert main(["explain", "--robots", str(tmp_path / "empty"), "/a"]) == 0
    assert "group: none" in capsys.readouterr().out


def test_a_site_is_explained_with_its_delay_and_turn(site, capsys):
    site.robots = (200, b"User-agent: *\nDisallow: /\nAllow: /a\nCrawl-delay: 7\n")

    assert main(["explain", "--allow-private", f"{site.origin}/a"]) == 0
    out = capsys.readouterr().out
    assert "allowed by Allow: /a (line 3)" in out
    assert "7 s between requests" in out
    assert "turn: in" in out
    assert "overruled: Disallow: / (line 2)" in out


def test_a_site_that_fails_has_status_3(site):
    site.robots = (500, b"")

    assert main(["explain", "--allow-private", f"{site.origin}/a"]) == 3


def test_an_invalid_url_is_one_line(rules, capsys):
    assert main(["explain", "nonsense"]) == 2
    assert main(["explain", "--robots", rules, "nonsense"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 2
