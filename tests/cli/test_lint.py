"""`polite lint`, of a file, of standard input, of a site."""

import json
import re
from pathlib import Path

import pytest

from polite.cli.main import main
from polite.robots.lint.checks import CODES

MISTYPED = b"User-agent: *\nDissallow: /x\nDisallow:\n"


def test_each_code_of_a_mistake_in_real_files_is_documented():
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

    assert re.findall(r"^\| (D\d+) \|", page.read_text(), re.MULTILINE) == [
        code for code in CODES if code[0] == "D"
    ]


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
    assert document["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"] == "polite"
    assert (result["ruleId"], result["level"]) == ("X7", "warning")
    assert result["ruleId"] in [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert place["artifactLocation"]["uri"].endswith("/my%20robots.txt")
    assert place["region"] == {"startLine": 2}
