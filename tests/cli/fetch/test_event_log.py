"""Logs of resumed runs."""

import pytest

from polite.cli.fetch.record import reopen_log as reopen
from polite.cli.timeline import Log
from polite.errors import InvalidOption

RUN = '{"t": 0.0, "event": "run", "at": 1.0}\n'
REQUEST = '{"t": 1.0, "event": "request", "origin": "http://a", "url": "http://a/", "status": 200}\n'


@pytest.mark.parametrize("rest", ["", '{"t": 2.0, "event": "requ', "{"])
def test_a_line_that_a_killed_run_has_cut_spoils_no_log(rest, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(RUN + REQUEST + rest)

    with reopen(path) as log:
        log.write(RUN + REQUEST)

    assert path.read_text() == (RUN + REQUEST) * 2
    assert len(list(Log(path).entries())) == 2


def test_a_log_that_is_not_there_yet_begins(tmp_path):
    with reopen(tmp_path / "run.jsonl") as log:
        log.write(RUN)

    assert (tmp_path / "run.jsonl").read_text() == RUN


@pytest.mark.parametrize("others", [b"x" * 2_000_000, b"notes", RUN.encode() + b"notes", b"notes\n"])
def test_a_file_of_another_program_is_not_a_log(others, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(others)

    with pytest.raises(
        InvalidOption,
        match=r"run\.jsonl: .* does not start a line of a log of polite fetch; the file was not changed",
    ):
        reopen(path)
    assert path.read_bytes() == others
