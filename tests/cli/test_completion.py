"""`polite completion`: shells complete command lines with the scripts that it prints."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from polite.cli.main import main

# As bash does at a tab: the words, and the place of the last one.
BASH = """
source ./script
function=$(complete -p polite | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
"$function" polite "${!#}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Print the script for a shell to a file in a folder with a robots.txt and a folder `records`."""
    monkeypatch.chdir(tmp_path)
    Path("robots.txt").touch()
    Path("records").mkdir()

    def write(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        assert main(["completion", shell]) == 0
        Path("script").write_text(capsys.readouterr().out)

    return write


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["ch"], ["check"]),
        (["fetch", "--long-delay", ""], ["cap", "obey", "refuse"]),
        (["check", "--dialect", "google-"], ["google-2010", "google-2019"]),
        (["check", "--robots", "ro"], ["robots.txt"]),
        (["store", "pu"], ["purge"]),
        (["store", "show", "https://example.com", "ro"], ["robots.txt"]),
        (["fetch", "--output", ""], ["records"]),
    ],
)
def test_bash_completes_commands_options_choices_and_files(script, line, found):
    script("bash")

    assert run("bash", "--norc", "-c", BASH, "bash", "polite", *line) == found


@pytest.mark.parametrize(
    ("shell", "options", "found"),
    [
        (
            "fish",
            ["--no-config", "-c", "source script; complete --do-complete 'polite fetch --long-delay ob'"],
            ["obey"],
        ),
        ("zsh", ["-f", "-n", "script"], []),
    ],
)
def test_other_shells_read_the_script(script, shell, options, found):
    script(shell)

    assert {*found} <= {*run(shell, *options)}


def test_without_shtab_the_error_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)

    assert main(["completion", "bash"]) == 2
    assert "pip install 'polite-crawl[cli]'" in capsys.readouterr().err
