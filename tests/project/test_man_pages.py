"""The man pages are those of the parser, and readers of man pages accept them."""

import shutil
import subprocess

import pytest

from polite.cli.main import ENVIRONMENT
from polite.cli.parser import parser
from tests.project import man_pages


def test_the_tracked_pages_are_those_of_the_parser() -> None:
    tracked = {file.name: file.read_text(encoding="utf-8") for file in man_pages.FOLDER.iterdir()}

    assert tracked == man_pages.pages(), "run ./dev man"


def test_writing_replaces_pages_and_deletes_those_of_commands_that_are_gone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(man_pages, "ROOT", tmp_path)
    monkeypatch.setattr(man_pages, "FOLDER", tmp_path / "man")
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "polite-gone.1").touch()

    assert man_pages.main() == 0

    assert {file.name for file in (tmp_path / "man").iterdir()} == set(man_pages.pages())
    assert "man pages in man/" in capsys.readouterr().out


def test_each_environment_variable_is_explained() -> None:
    text = "".join(man_pages.pages().values())

    assert all(f"\\fB{name}\\fR" in text for name in ENVIRONMENT)


def test_no_text_is_read_as_a_control_line_or_an_escape() -> None:
    command = parser()
    for action in command._actions:
        action.help = ".so /etc/passwd - \\n"

    page = man_pages._page("polite", command, [])

    assert "\n\\&.so /etc/passwd \\- \\en.\n" in page


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_no_error() -> None:
    files = sorted(map(str, man_pages.FOLDER.iterdir()))

    subprocess.run(["mandoc", "-Tlint", "-Werror", *files], check=True)
