"""`polite fetch` from its command line to the server's own log, in virtual time."""

import hashlib
import json

from tests.cli.fetch.conftest import limit_capacity


def test_each_url_has_one_record_and_its_body_in_the_folder(site):
    assert site.run("/a", "/b", "/a") == 0

    assert list(site.records) == ["/a", "/b"]
    record = site.records["/a"]
    assert (record["outcome"], record["status"], record["length"], record["tries"]) == ("fetched", 200, 7, 1)
    assert record["headers"] == {"content-type": "text/plain; charset=utf-8"}
    assert record["sha256"] == hashlib.sha256(b"page /a").hexdigest()
    assert (site.folder / record["file"]).read_bytes() == b"page /a"
    assert record["body"] is None
    assert record["fetched_at"].startswith("2023-11-14T22:13:2")


def test_robots_txt_comes_first_and_pages_follow_one_delay_apart(site):
    site.run("--delay", "3", "/a", "/b", "/c")

    (queued_at, first), *_ = site.asked
    assert first == "/robots.txt"
    assert [round(at - queued_at) for at in site.times] == [3, 6, 9]
    assert site.records["/c"]["waited_s"] >= 9


def test_records_go_to_standard_output_without_a_folder(site):
    assert site.run("/a", output=False) == 0

    (record,) = map(json.loads, site.out.splitlines())
    assert (record["url"], record["file"]) == (f"{site.origin}/a", None)


def test_a_refused_url_is_recorded_with_its_line_and_not_requested(site):
    assert site.run("/no/diary", "/a") == 1

    assert site.records["/no/diary"] == {
        "url": f"{site.origin}/no/diary",
        "input": f"{site.origin}/no/diary",
        "outcome": "refused",
        "code": "RULE",
        "detail": "Disallow: /no",
        "line": 2,
    }
    assert site.paths == ["/a"]


def test_an_invalid_url_does_not_affect_the_others(site):
    assert site.run("nonsense", "ftp://127.0.0.1/x", "/a") == 2

    assert site.records["nonsense"]["outcome"] == "invalid"
    assert site.records["ftp://127.0.0.1/x"]["detail"] == "only http and https pages are fetched"
    assert site.records["/a"]["outcome"] == "fetched"


def test_a_host_and_port_without_a_scheme_have_a_hint(site):
    assert site.run("a.test:18931") == 2

    assert "did you mean http://a.test:18931?" in site.records["a.test:18931"]["detail"]


def test_urls_come_from_standard_input(site, feed):
    feed(f"{site.origin}/a\n\n\xff\n{site.origin}/b\n".encode("latin-1"))

    assert site.run("-") == 2
    assert site.paths == ["/a", "/b"]


def test_an_origin_without_rules_is_given_up_after_its_tries(site):
    site.pages["/robots.txt"] = [{"status": 500}]

    assert site.run("--tries", "2", "--max-outage", "0", "/a") == 3

    assert site.records["/a"]["outcome"] == "given up"
    assert site.records["/a"]["code"] == "ROBOTS_SERVER_ERROR"
    assert len(site.asked) == 2


def test_a_long_list_waits_for_capacity(site, monkeypatch):
    limit_capacity(1, monkeypatch)

    assert site.run("/a", "/b", "/c") == 0
    assert site.paths == ["/a", "/b", "/c"]


def test_no_urls_is_a_usage_error(site):
    assert site.run() == 2
    assert site.err == "polite: no URLs given; name them, use --list FILE, or - to read standard input\n"


def test_a_folder_with_records_of_another_run_is_refused(site):
    site.run("/a")

    assert site.run("/b") == 2
    assert "records.jsonl already exists; choose another folder, or continue it with --resume" in site.err
    assert list(site.records) == ["/a"]
