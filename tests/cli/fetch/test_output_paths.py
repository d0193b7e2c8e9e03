"""Two options never write to the same file; this is checked before any file is opened."""

from pathlib import Path

import pytest

from polite.stores.database import FileLock

LINKS = {"symbolic": "symlink_to", "hard": "hardlink_to"}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--log", "q", "--resume", "q"], ("--log", "--resume")),
        (["--log", "q.robots", "--resume", "q"], ("--log", "--resume (FILE.robots)")),
        (["--log", "x/../w.warc.gz", "--warc", "w.warc.gz"], ("--log", "--warc")),
        (["--log", "out/records.jsonl", "--output", "out"], ("--log", "--output (DIR/records.jsonl)")),
        (["--resume", "out/records.jsonl", "--output", "out"], ("--resume", "--output (DIR/records.jsonl)")),
        (["--log", "out/bodies", "--output", "out"], ("--log", "--output (DIR/bodies)")),
        (["--log", "out/bodies/ab/ab", "--output", "out"], ("--log", "--output (DIR/bodies)")),
        (["--warc", "q.warc.gz", "--resume", "q.warc.gz"], ("--warc", "--resume")),
    ],
)
def test_two_options_for_one_file_are_wrong_usage(arguments, names, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert site.run(*arguments, "/a", output=False) == 2
    assert site.err.startswith(f"polite: {names[0]} and {names[1]} would both write to {arguments[1]}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_is_the_file_it_leads_to(kind, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q").write_text("precious")
    getattr(tmp_path / "log", LINKS[kind])(tmp_path / "q")

    assert site.run("--log", "log", "--resume", "q", "/a", output=False) == 2
    assert "--log and --resume would both write to log" in site.err
    assert (tmp_path / "q").read_text() == "precious"


def test_a_link_to_what_is_not_there_yet_counts_too(site, tmp_path):
    (tmp_path / "q.robots").symlink_to(tmp_path / "q")

    assert site.run("--resume", str(tmp_path / "q"), "/a") == 2
    assert "--resume and --resume (FILE.robots) would both write to" in site.err


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["--output", "out"], "out/records.jsonl"),
        (["--output", "out", "--resume", "queue"], "out/records.jsonl"),
        (["--log", "run.jsonl"], "run.jsonl"),
        (["--warc", "w.warc.gz"], "w.warc.gz"),
    ],
)
def test_two_processes_never_write_to_the_same_file(arguments, file, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    other = FileLock(Path(file))
    assert other.acquire(0)

    assert site.run("--quiet", *arguments, "/a", output=False) == 2
    assert site.err == (
        f"polite: {arguments[0]}: another polite fetch is writing to {file}; wait until it ends, or choose another path\n"
    )
    assert not Path(file).exists()
    assert site.asked == []

    other.release()
    assert site.run("--quiet", *arguments, "/a", output=False) == 0
    assert list(tmp_path.rglob("*-lock")) == []


def test_records_that_another_process_writes_are_not_read_first(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polite.cli.fetch.lists.RepeatedLines.read", pytest.fail)
    Path("out").mkdir()
    Path("queue").touch()
    other = FileLock(Path("out/records.jsonl"))
    assert other.acquire(0)

    assert site.run("--quiet", "--output", "out", "--resume", "queue", "/a", output=False) == 2
    assert "another polite fetch is writing to out/records.jsonl" in site.err
    other.release()


def test_a_device_is_written_to_without_a_lock(site, tmp_path):
    device = tmp_path / "device"
    device.symlink_to("/dev/null")

    assert site.run("--log", str(device), "/a") == 0
    assert list(tmp_path.rglob("*-lock")) == []
