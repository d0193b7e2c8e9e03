"""`polite explain`, with a file and with a site."""

import re

from polite.cli.main import main


def test_a_file_explains_the_rule_and_what_it_overruled(rules, capsys):
    status = main(["explain", "--robots", rules, "http://me:secret@x/no/but"])

    assert status == 0
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


def test_an_invalid_url_is_one_line(rules, capsys):
    assert main(["explain", "nonsense"]) == 2
    assert main(["explain", "--robots", rules, "nonsense"]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)


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


def test_of_very_many_lines_uses_and_licences_the_first_are_shown(tmp_path, capsys):
    path = tmp_path / "robots.txt"
    labels = ", ".join(f"k{number}=n" for number in range(100))
    path.write_text(
        f"User-agent: *\nContent-Usage: / {labels}\n"
        + "Disallow: /\n" * 100
        + "License: https://example.com/\n" * 30
    )

    assert main(["explain", "--robots", str(path), "/"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {"    and 41 more", "  and 40 more uses"} <= {*lines}
    assert lines[-1] == "  and 20 more licences"
    assert len(lines) < 160
