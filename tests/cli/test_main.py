"""The command as a whole: an expected error is one line, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from polite.cli import check as check_module
from polite.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def _raising(error):
    def check(_):
        raise error

    return check


def test_a_missing_file_is_one_line(capsys):
    status = main(["check", "--robots", "/nowhere/robots.txt", "/x"])

    assert status == 2
    assert capsys.readouterr().err == "polite: /nowhere/robots.txt: No such file or directory\n"


def test_a_folder_for_a_file_is_one_line(tmp_path, capsys):
    status = main(["lint", str(tmp_path)])

    assert status == 2
    assert capsys.readouterr().err == f"polite: {tmp_path}: Is a directory\n"


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_at_the_very_end_changes_no_status(number):
    program = f"""
import importlib, os, signal
module = importlib.import_module("polite.cli.main")

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.{number}):
        kill(pid, number)  # Python has given its signal handlers back by now

module.main = lambda: 130
module.last = Last()
module.program()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("polite", "polite.errors"),
        ("polite", "polite.cli.main"),
        ("-m polite", "polite.gate.gate"),
        ("-m polite", "polite.cli.parser"),
        ("other", "polite.errors"),
    ],
)
def test_an_interrupt_of_imports_is_no_traceback(command, module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(f"""
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
""")
    for name in ("polite", "other"):
        (tmp_path / name).write_text("from polite.cli import program\nprogram()\n")
    arguments = command.split() if command.startswith("-") else [str(tmp_path / command)]

    ended = subprocess.run(
        [sys.executable, *arguments, "--version"],
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    if command == "other":
        assert "KeyboardInterrupt" in ended.stderr
    else:
        assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


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


def test_an_interrupt_ends_with_the_shells_status(monkeypatch, capsys):
    monkeypatch.setattr(check_module, "check", _raising(KeyboardInterrupt()))

    assert main(["check", "/x"]) == 130
    assert capsys.readouterr().err == "polite: interrupted\n"


def test_what_a_group_of_tasks_failed_with_is_one_line(monkeypatch, capsys):
    group = ExceptionGroup("unhandled", [ExceptionGroup("nested", [OSError("no port is free")])])
    monkeypatch.setattr(check_module, "check", _raising(group))

    assert main(["check", "/x"]) == 2
    assert capsys.readouterr().err == "polite: no port is free\n"


def test_a_defect_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(check_module, "check", _raising(ExceptionGroup("unhandled", [RuntimeError("ours")])))

    with pytest.raises(RuntimeError, match="ours"):
        main(["check", "/x"])


def test_a_closed_pipe_ends_quietly(monkeypatch, capsys, rules, tmp_path):
    class Unread:
        written = ""
        descriptor = (tmp_path / "out").open("w")

        def isatty(self):
            return False

        def write(self, text):
            self.written += text

        def flush(self):
            raise BrokenPipeError(32, "Broken pipe")

        def fileno(self):
            return self.descriptor.fileno()

    monkeypatch.setattr(sys, "stdout", Unread())
    status = main(["check", "--robots", rules, "/x"])
    Unread.descriptor.close()

    assert status == 141
    assert capsys.readouterr().err == ""


def test_a_closed_output_is_no_error(monkeypatch, rules):
    monkeypatch.setattr(sys, "stdout", None)

    assert main(["check", "--robots", rules, "/no"]) == 1


def test_what_the_terminal_cannot_write_is_escaped(rules, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "polite", "check", "--robots", rules, "http://x/ü"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
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
        cwd=Path(__file__).resolve().parents[2],
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_polite_is_the_module_and_the_command():
    from polite.cli import main as exported

    assert exported is main
