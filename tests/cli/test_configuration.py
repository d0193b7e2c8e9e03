"""Options from a file and from the environment: what overrules what, and what each error names."""

import argparse

import pytest

from polite.cli.main import ENVIRONMENT, main, parse
from polite.cli.parser import arguments, parser, subcommands


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def written(folder):
    """Return a function that writes polite.toml."""

    def write(text):
        octets = text if isinstance(text, bytes) else text.encode()
        (folder / "polite.toml").write_bytes(octets)

    return write


def test_a_file_sets_options_of_every_kind(written):
    written(
        """
        # comments are allowed
        [fetch]
        agent = "FileBot/1.0"
        delay = 2.5
        concurrency = 7
        quiet = true
        allow-private = false
        header = ["X-One: 1", "X-Two: 2"]
        output = "pages"
        dialect = "google"
        """
    )

    options = parse(["fetch", "--config", "polite.toml", "http://a.test/"])

    assert (options.agent.header, options.delay, options.concurrency) == ("FileBot/1.0", 2.5, 7)
    assert (options.quiet, options.allow_private, options.output) == (True, False, "pages")
    assert options.header == [("X-One", "1"), ("X-Two", "2")]
    assert (options.dialect.name, options.urls) == ("google", ["http://a.test/"])


def test_the_command_line_overrules_the_environment_and_that_the_file(written, monkeypatch):
    written('[fetch]\nagent = "FileBot/1.0"\ndelay = 2\ntries = 9\nheader = ["X-One: file"]')
    monkeypatch.setenv("POLITE_CONFIG", "polite.toml")

    def found(*arguments):
        options = parse(["fetch", *arguments])
        return options.agent.header, options.delay, options.tries

    monkeypatch.setenv("POLITE_AGENT", "")
    assert found() == ("FileBot/1.0", 2, 9)
    monkeypatch.setenv("POLITE_AGENT", "EnvBot/1.0")
    monkeypatch.setenv("POLITE_DELAY", "3")
    assert found() == ("EnvBot/1.0", 3, 9)
    assert found("--agent", "LineBot/1.0", "--delay=4") == ("LineBot/1.0", 4, 9)
    assert parse(["fetch", "--header", "X-One: line"]).header[-1] == ("X-One", "line")


def test_the_agent_of_the_environment_is_that_of_each_command_with_one(monkeypatch):
    single = {
        name
        for name, command in subcommands(parser())
        for action in arguments(command)
        if "--agent" in action.option_strings and not isinstance(action, argparse._AppendAction)
    }

    assert ENVIRONMENT["POLITE_AGENT"][1] == single
    monkeypatch.setenv("POLITE_AGENT", "EnvBot/1.0")
    assert {parse([name, "http://a.test/"]).agent.header for name in single} == {"EnvBot/1.0"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fetch]\nagent =\n", "polite.toml:2: Invalid value"),
        ("\n\n\ufeff[fetch]", "polite.toml:3: "),
        (b"[fetch]\n# \xff", "polite.toml:2: it is not UTF-8"),
        ("agent = 'x'", "polite.toml: 'agent' is not known; options of polite fetch are in a table [fetch]"),
        ("[fetch]\nagnet = 'x'", "polite.toml: polite fetch has no option --agnet; did you mean agent?"),
        ("[fetch]\nconfig = 'x'", "polite.toml: polite fetch has no option --config"),
        ("[fetch]\ndelay = 1979-05-27", "delay must be a string, a number, true, false"),
        ("[fetch]\nheader = [1]", "true, false or an array of strings, got an array"),
        ("[fetch.delay]\nx = 1", "got a table"),
        ("[fetch]\nquiet = 'yes'", "quiet is a switch: it must be true or false, got 'yes'"),
        ("[fetch]\ndelay = false", "delay is no switch: it must have a value, got false"),
        ("x" * 2_000_000, "a configuration has at most 1048576 octets"),
        ("[fetch]\nx = " + "[" * 100_000, "polite.toml:"),
    ],
)
def test_what_is_no_configuration_is_one_line(text, said, written, capsys):
    written(text)

    assert main(["fetch", "--config", "polite.toml", "http://a.test/"]) == 2

    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("polite: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "text", "said"),
    [
        ({}, "[fetch]\ndelay = 'soon'", "polite.toml: argument --delay: --delay must be a number of seconds"),
        ({}, "[fetch]\nagent = '1.0'", "polite.toml: argument --agent: "),
        ({"POLITE_AGENT": "1.0"}, "[fetch]", "POLITE_AGENT: argument --agent: "),
    ],
)
def test_a_value_that_is_wrong_names_where_it_is_from(variables, text, said, written, monkeypatch, capsys):
    written(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit) as ended:
        main(["fetch", "--config", "polite.toml", "http://a.test/"])

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"polite: {said}")


def test_a_file_that_cannot_be_read_is_one_line(folder, capsys):
    assert main(["fetch", "--config", "missing.toml"]) == 2
    assert main(["fetch", "--config", str(folder)]) == 2

    assert capsys.readouterr().err == (
        "polite: --config missing.toml: No such file or directory\n"
        f"polite: --config {folder} is a folder; name a file in it\n"
    )
