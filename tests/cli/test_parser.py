"""Options: each command has help, and wrong usage is one line."""

import pytest

from polite.cli.completion import arguments, subcommands
from polite.cli.main import main
from polite.cli.parser import parser


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ([], "COMMAND"),
        (["check"], "standard input"),
        (["explain"], "age of robots.txt, delay"),
        (["lint"], "any URL of the site"),
        (["diff"], "decide differently"),
        (["matrix"], "which of many agents may fetch"),
        (["fetch"], "limit on requests in flight"),
        (["timeline"], "a log that polite fetch --log wrote"),
    ],
)
def test_each_command_has_help(command, says, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])

    assert left.value.code == 0
    assert says in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "command",
    [
        [],
        *([name] for name, _ in subcommands(parser())),
    ],
)
def test_help_names_the_exit_statuses(command, capsys):
    with pytest.raises(SystemExit):
        main([*command, "--help"])

    assert "exit status: 0" in capsys.readouterr().out


def test_help_texts_have_one_form():
    for name, command in subcommands(parser()):
        texts = [
            command.description,
            *(action.help for action in arguments(command) if action.dest != "help"),
        ]
        for text in texts:
            assert text, name
            assert text[0].islower() or text.split()[0].isupper() or text.startswith(("ETag", "TOML")), text
            assert not text.endswith("."), text


def test_the_version_is_printed(capsys):
    import polite

    with pytest.raises(SystemExit) as left:
        main(["--version"])

    assert left.value.code == 0
    form = " (compiled)" if polite.__compiled__ else ""
    assert capsys.readouterr().out == f"polite {polite.__version__}{form}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["crawl"], "invalid choice: 'crawl'"),
        (["check"], "URL"),
        (
            ["check", "/x", "--agent", "1.0"],
            "no product: start it with one such as ExampleBot/1.0 (see polite",
        ),
        (["check", "/x", "--agent", "Bot\nX-Evil: 1"], "at character 3"),
        (["check", "/x", "--dialect", "latin"], "the dialects are classic"),
        (["check", "/x", "--timeout", "soon"], "'soon'"),
        (["check", "/x", "--timeout", "nan"], "--timeout must be a number from"),
        (["check", "/x", "--timeout", "-1"], "--timeout must be a number from"),
        (["lint", "x", "--dialect", "latin"], "the dialects are classic"),
        (["lint", "x", "--format", "xml"], "invalid choice"),
        (["fetch", "/x", "--delay", "-1"], " --delay must be a finite number >= 0, got -1.0"),
        (["fetch", "/x", "--concurrency", "0"], "--concurrency must be an integer from 1 to 10000, got 0"),
        (["fetch", "/x", "--tries", "many"], "'many'"),
        (["fetch", "/x", "--max-bytes", "0"], " --max-bytes must be an integer from 1 to 67108864, got 0"),
        (
            ["fetch", "/x", "--max-redirects", "99"],
            " --max-redirects must be an integer from 0 to 20, got 99",
        ),
        (
            ["fetch", "/x", "--max-bytes", "1e3"],
            " --max-bytes must be an integer from 1 to 67108864, got '1e3'",
        ),
        (["fetch", "/x", "--delay", "soon"], " --delay must be a number of seconds, got 'soon'"),
        (["check", "/x", "--timeout", "-1"], " --timeout must be a number from 0.001 to 3600, got -1.0"),
        (["timeline", "x", "--rows", "0"], "--rows must be"),
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
    assert err.startswith("polite: ")
    assert err.count("\n") == 1
