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
    """Print the script for bash to a file in a folder with a robots.txt and a folder `records`."""
    monkeypatch.chdir(tmp_path)
    Path("robots.txt").touch()
    Path("records").mkdir()
    assert main(["completion", "bash"]) == 0
    Path("script").write_text(capsys.readouterr().out)


@pytest.mark.usefixtures("script")
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
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
def test_bash_completes_commands_options_choices_and_files(line, found):
    command = ["bash", "--norc", "-c", BASH, "bash", "polite", *line]

    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == found


def test_without_shtab_the_error_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)

    assert main(["completion", "bash"]) == 2
    assert "pip install 'polite-crawl[cli]'" in capsys.readouterr().err
