"""Options: each command has help, and what is wrong is said in one line."""

import pytest

from polite.cli.main import main


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ([], "COMMAND"),
        (["check"], "standard input"),
        (["explain"], "the delay"),
        (["lint"], "a URL of the site"),
        (["diff"], "decide differently"),
        (["demo"], "sixteen virtual hosts"),
    ],
)
def test_each_command_has_help(command, says, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])

    assert left.value.code == 0
    assert says in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["check", "explain", "lint", "diff"])
def test_help_names_the_exit_statuses(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])

    assert "exit status: 0" in capsys.readouterr().out


def test_the_version_is_printed(capsys):
    import polite

    with pytest.raises(SystemExit) as left:
        main(["--version"])

    assert left.value.code == 0
    assert capsys.readouterr().out == f"polite {polite.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["fetch"], "invalid choice: 'fetch'"),
        (["check"], "URL"),
        (["check", "/x", "--agent", "1.0"], "no product"),
        (["check", "/x", "--agent", "Bot\nX-Evil: 1"], "at character 3"),
        (["check", "/x", "--dialect", "latin"], "the dialects are classic"),
        (["check", "/x", "--timeout", "soon"], "'soon'"),
        (["check", "/x", "--timeout", "nan"], "number of seconds"),
        (["check", "/x", "--timeout", "-1"], "number of seconds"),
        (["lint", "x", "--dialect", "latin"], "the dialects are classic"),
        (["lint", "x", "--format", "xml"], "invalid choice"),
        (["diff", "a", "b"], "--urls"),
        (["diff", "a", "b", "--urls", "-", "--agent", "1.0"], "no product"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments, says, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)

    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
