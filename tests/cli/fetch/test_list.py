"""Lists of URLs: each line has a record that names it, however hostile, and however often the list is given."""

import json

import pytest

from polite.cli.stdin import LONGEST_LINE
from tests.cli.fetch.conftest import interrupted, records_of


def _found(site, *fields):
    return [
        tuple(str(record.get(field)).replace(site.origin, "") for field in fields)
        for record in records_of(site)
    ]


@pytest.fixture
def listed(tmp_path):
    def write(octets, name="urls.txt"):
        (tmp_path / name).write_bytes(octets)
        return ["--list", str(tmp_path / name)]

    return write


def test_a_record_has_the_line_as_it_was_given(site, listed):
    lines = [f"{site.origin}/a#top", f"  {site.origin.upper()}/b/../c  ", f"{site.origin}/d"]
    assert site.run(*listed(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())) == 0
    assert {record["url"]: record["input"] for record in records_of(site)} == {
        f"{site.origin}/a": lines[0],
        f"{site.origin}/c": lines[1],
        f"{site.origin}/d": lines[2],
    }


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("mailto:joe@example.com", "mailto:joe@example.com"),
        ("ftp://me:secret@example.com/x", "ftp://example.com/x"),
        ("ht\ttp://me:sec\tret@ex ample/", "http://ex ample/"),
        ("me:secret@example.com", "example.com"),
        ("x" * 900, "x" * 900),
    ],
)
def test_an_invalid_line_is_recorded_whole_but_for_credentials(line, given, site):
    assert site.run(line) == 2
    (record,) = records_of(site)
    assert (record["input"], record["outcome"]) == (given, "invalid")
    assert "input_at" not in record


def test_comments_and_blank_lines_are_no_urls(site, listed):
    text = f"# a comment\n\n   \n \t# {site.origin}/x\n{site.origin}/a # no comment\n"
    site.run(*listed(text.encode()))
    assert site.paths == ["/a%20"]


@pytest.mark.parametrize(("space", "scheme"), [(" ", "http"), ("\t", "HTTPS"), ("\u00a0", "http")])
def test_two_urls_on_one_line_are_not_fetched_as_one(space, scheme, site, listed):
    line = f"{site.origin}/a{space}{scheme}://me:secret@b.test/"
    assert site.run(*listed(f"{site.origin}/ok\n{line}\n".encode())) == 2
    (record,) = [record for record in records_of(site) if record["outcome"] == "invalid"]
    assert record["detail"] == "the line has two URLs: write one per line"
    assert record["input_at"].endswith("urls.txt:2")
    assert "secret" not in json.dumps(record)
    assert site.paths == ["/ok"]


def test_what_is_wrong_with_a_line_is_told_with_its_list_and_number(site, listed, tmp_path):
    text = b"\n".join(
        [b"#", site.origin.encode() + b"/a", b"http://a\0b/", b"\xff", b"x" * 10_000_000, b"nonsense"]
    )

    assert site.run(*listed(text)) == 2

    invalid = [record for record in records_of(site) if record["outcome"] == "invalid"]
    assert [record["input_at"].removeprefix(str(tmp_path)) for record in invalid] == [
        f"/urls.txt:{number}" for number in (3, 4, 5, 6)
    ]
    assert [record["input"][:9] for record in invalid] == ["http://a\0", "\\xff", "x" * 9, "nonsense"]
    assert "is not UTF-8" in invalid[1]["detail"]
    assert f"longer than {LONGEST_LINE} octets" in invalid[2]["detail"]
    assert len(invalid[2]["input"]) < 2_000
    assert site.paths == ["/a"]


def test_a_line_that_names_a_url_again_has_a_record_of_its_own(site, listed):
    text = f"{site.origin}/a\n{site.origin}/a#b\n{site.origin}/no\n{site.origin}/no\n"

    assert site.run(*listed(text.encode())) == 1

    assert sorted(_found(site, "input", "outcome", "url")) == [
        ("/a", "fetched", "/a"),
        ("/a#b", "duplicate", "/a"),
        ("/no", "duplicate", "/no"),
        ("/no", "refused", "/no"),
    ]
    places = [record["input_at"].rpartition(":")[2] for record in records_of(site) if "input_at" in record]
    assert sorted(places) == ["2", "4"]
    assert "1 fetched" in site.err
    assert "2 duplicate" in site.err


@pytest.mark.parametrize("output", [True, False])
def test_a_line_has_one_record_over_all_runs_wherever_records_go(output, prompt, queue, listed):
    lines = ["/a", "nonsense", "/b", "/a", "/c#c", "/b#2", "nonsense", "/no", "/r", "/c", "/no", "/404", "/d"]
    text = "\n".join(line if line == "nonsense" else prompt.origin + line for line in lines)
    prompt.pages["/a"] = [interrupted]
    prompt.pages["/404"] = [{"status": 404}]
    # Its target is a line, too, and waits when the run is interrupted.
    prompt.pages["/r"] = [{"status": 302, "headers": {"Location": "/d"}}]
    printed = []

    for number in range(4):
        prompt.run("--resume", queue, *listed(text.encode()), "--concurrency", "1", output=output)
        printed += prompt.out.splitlines()
        assert ("interrupted" in prompt.err) is (number == 0)

    records = records_of(prompt) if output else [json.loads(line) for line in printed]
    found = [record["input"].replace(prompt.origin, "") for record in records if "from" not in record]
    assert sorted(found) == sorted(lines)
    assert sorted(prompt.paths) == ["/404", "/a", "/b", "/c", "/d", "/r"]


def test_a_killed_run_loses_no_duplicate(prompt, queue, listed):
    text = f"{prompt.origin}/a\n{prompt.origin}/a#1\n{prompt.origin}/a#2\nnonsense\nnonsense\n"
    again = listed(text.encode())
    prompt.run("--resume", queue, *again)
    records = prompt.folder / "records.jsonl"
    whole = records.read_text().splitlines(keepends=True)
    records.write_text("".join(line for line in whole if "#2" not in line and '"nonsense"' not in line))

    prompt.run("--resume", queue, *again)

    assert sorted(_found(prompt, "input", "outcome")) == [
        ("/a", "fetched"),
        ("/a#1", "duplicate"),
        ("/a#2", "duplicate"),
        ("nonsense", "invalid"),
        ("nonsense", "invalid"),
    ]


def test_the_limit_counts_new_urls_and_the_rest_is_not_read(prompt, queue):
    urls = ["/a", "/a#1", "nonsense", "/b", "/c", "/d", "/e"]

    assert prompt.run("--resume", queue, "--limit", "2", *urls) == 2
    assert prompt.paths == ["/a", "/b"]
    assert "polite: the list was not read beyond 2 new URLs (--limit)\n" in prompt.err

    prompt.run("--resume", queue, "--limit", "1", *urls)
    assert prompt.paths == ["/a", "/b", "/c"]
    assert "1 new URL (--limit)" in prompt.err

    prompt.run("--resume", queue, "--limit", "9", *urls)
    assert prompt.paths == ["/a", "/b", "/c", "/d", "/e"]
    assert "--limit" not in prompt.err


_NO_NAME = (
    "polite: polite fetch of more than 5 URLs needs a name by which sites know your crawler: "
    'pass --agent, or set POLITE_AGENT, such as "ExampleBot/1.0 (+https://example.com/bot)"\n'
)


@pytest.mark.parametrize("by_list", [True, False])
def test_more_than_a_few_urls_need_an_agent_before_anything_is_sent_or_written(by_list, site, listed):
    urls = [f"{site.origin}/{letter}" for letter in "abcdef"]
    arguments = listed("\n".join(["# the list", *urls]).encode()) if by_list else urls
    assert site.run(*arguments, named=False) == 2
    assert (site.err, site.asked, site.folder.exists()) == (_NO_NAME, [], False)
    assert site.run("--limit", "5", *arguments, named=False) == 0
    assert len(site.paths) == 5


def test_the_sixth_line_of_standard_input_ends_a_run_without_a_name_which_may_then_be_given_one(
    prompt, queue, feed
):
    urls = "".join(f"{prompt.origin}/{letter}\n" for letter in "abcdef").encode()
    prompt.limit_s = None
    feed(urls)
    assert prompt.run("--quiet", "--resume", queue, "-", named=False) == 2
    assert prompt.err == _NO_NAME
    assert len(prompt.paths) <= 5
    feed(urls)

    assert prompt.run("--resume", queue, "-") == 0  # as the message asks for
    assert len(prompt.paths) == 6
    assert prompt.run("--resume", queue, "--agent", "Other/1.0", "/a") == 2
