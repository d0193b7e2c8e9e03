"""What a run prints and logs: progress, errors, and the log file."""

import json
import sys
from pathlib import Path

import pytest

from polite.cli.fetch import run as run_module
from polite.cli.fetch.archive import Folder
from polite.cli.fetch.progress import Progress
from polite.cli.fetch.record import Records
from tests.cli.fetch.conftest import drop


def test_a_body_that_cannot_be_written_ends_the_run_with_one_line(site, monkeypatch):
    def full(self, body):
        raise OSError(28, "No space left on device", "bodies/ab")

    monkeypatch.setattr(Folder, "_write", full)

    assert site.run("--quiet", "/a", "/b") == 2
    assert site.err == "polite: bodies/ab: No space left on device\n"
    assert site.records == {}


def test_a_refusal_that_cannot_be_written_ends_the_run_with_one_line(site, monkeypatch):
    def full(self, url, outcome, cause=None, **more):
        raise OSError(28, "No space left on device", "records.jsonl")

    monkeypatch.setattr(Records, "write", full)

    assert site.run("--quiet", "/no", "/no/2") == 2
    assert site.err == "polite: records.jsonl: No space left on device\n"


def test_lines_report_progress_and_the_remaining_time(site):
    site.run("--delay", "6", "/a", "/b", "/c", "/no")

    lines = site.err.splitlines()
    assert lines[0].endswith(f"; at least 8.0 s more, for {site.origin} (2 x 6 s)")
    assert "1 fetched (0." in lines[0]
    assert "1 refused, 2 waiting, 0 in flight" in lines[0]
    assert lines[-1].startswith("polite: 18 s  3 fetched (0.2/s), 1 refused, 0 waiting, 0 in flight")


def test_a_quiet_run_prints_nothing(site):
    assert site.run("--quiet", "--delay", "20", "/a") == 0
    assert (site.out, site.err) == ("", "")


def test_duplicate_urls_do_not_count_in_the_remaining_time(site):
    site.run("--delay", "20", "/a", "/a", "/b", "/b", "/a")

    assert "(2 x 20 s)" in site.err.splitlines()[0]


@pytest.mark.parametrize("output", [True, False])
def test_there_is_no_live_table_when_records_go_to_the_terminal(output, site, monkeypatch):
    live = []
    monkeypatch.setattr(run_module, "Progress", lambda out, live: made(live))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def made(wanted):
        live.append(wanted)
        return Progress(sys.stderr, live=False)

    site.run("/a", output=output)

    assert live == [output]


def test_the_log_has_each_request_refusal_and_back_off(site, tmp_path):
    site.pages["/busy"] = [{"status": 429, "headers": {"Retry-After": "9"}}, {"text": "now"}]
    site.pages["/gone"] = [drop]

    site.run("--log", str(tmp_path / "run.jsonl"), "--tries", "2", "/busy", "/no", "/gone")

    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [(each["event"], each.get("status")) for each in lines] == [
        ("run", None),
        ("robots", 200),
        ("refused", None),
        ("slowed", 429),
        ("request", 429),
        ("request", 200),
        ("request", None),
        ("request", None),
    ]
    assert {each["origin"] for each in lines[1:]} == {site.origin}
    assert lines[3]["for_s"] == 9
    requests = [each["t"] for each in lines if each["event"] == "request"]
    assert requests == pytest.approx([at - site.began for at in site.times], abs=0.01)


def test_a_log_in_a_missing_folder_is_an_error_of_one_line(site, tmp_path):
    missing = Path(tmp_path / "none" / "run.jsonl")

    assert site.run("--log", str(missing), "/a") == 2
    assert site.err == f"polite: {missing}: No such file or directory\n"
