"""The command as a whole: an expected error is one line, never a traceback; exit statuses; messages name its own options."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import polite
from polite.cli import check as check_module
from polite.cli.main import main
from polite.cli.parser import parser, subcommands
from polite.cli.terminal import OPTIONS, spelled

ROOT = Path(__file__).resolve().parents[2]


def test_sigterm_ends_any_command_with_the_shells_status():
    program = """
import importlib, os, signal
module = importlib.import_module("polite.cli.main")

def main():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print("closed", flush=True)

module.main = main
module.program()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "closed\n", "")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "polite: interrupted\n"),
        (
            ExceptionGroup("a", [ExceptionGroup("b", [OSError("no port is free")])]),
            2,
            "polite: no port is free\n",
        ),
        (ExceptionGroup("a", [RuntimeError("a defect of ours")]), None, ""),
    ],
)
def test_an_expected_error_is_one_line_and_a_defect_is_not_hidden(error, status, said, monkeypatch, capsys):
    def check(_):
        raise error

    monkeypatch.setattr(check_module, "check", check)

    if status is None:
        with pytest.raises(RuntimeError, match="ours"):
            main(["check", "/x"])
    else:
        assert main(["check", "/x"]) == status
    assert capsys.readouterr().err == said


def test_what_the_terminal_cannot_write_is_escaped(rules, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "polite", "check", "--robots", rules, "http://x/ü"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
        check=False,
    )

    assert done.stdout.startswith(b"allowed     http://x/\\xfc")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_neither_aiohttp_nor_rich(option):
    program = (
        "import sys\nfrom polite.cli.main import main\n"
        f"try:\n    main([{option!r}])\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'aiohttp', 'rich', 'aiodns'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


# Options in messages.


def test_every_option_of_the_table_is_one_of_the_command_line():
    known = {
        option
        for _, each in subcommands(parser())
        for action in each._actions
        for option in action.option_strings
    }

    assert set(OPTIONS.values()) <= known


@pytest.mark.parametrize("reason", polite.Reason)
def test_the_option_of_every_reason_is_named_without_python(reason):
    said = spelled(f"failed once; {reason.option} changes it ({reason.value})")

    assert not re.search(r"Policy|open_gate|[a-z]+_[a-z]+", said)
    assert said.startswith(
        f"failed once; {OPTIONS.get(reason.option, 'no command-line option')} changes it ("
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no whole answer within FetchPolicy.timeout=7 s", "no whole answer within --timeout=7 s"),
        (
            "use FetchPolicy.allow_private or allowed_networks to permit it",
            "use --allow-private to permit it",
        ),
        (
            "fe80::1 is blocked; only FetchPolicy.allowed_networks can permit it",
            "fe80::1 is blocked and never fetched: no option permits it",
        ),
        ("more than SitemapPolicy.max_files=5 files", "more than the limit of 5 files"),
        ("does not count (RobotsPolicy.keep_stale)", "does not count (the option keep stale)"),
        (
            "Retry-After 9 s, held to max_retry_after 5 s",
            "Retry-After 9 s, held to the limit on Retry-After 5 s",
        ),
        ("max_tries=13", "--tries=13"),
        ("http://a.test/min_delay?max_hold=1 /max_hold", "http://a.test/min_delay?max_hold=1 /max_hold"),
    ],
)
def test_names_are_spelled_as_on_the_command_line_and_urls_are_not(text, said):
    assert spelled(text) == said
