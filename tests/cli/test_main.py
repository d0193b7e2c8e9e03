"""The command as a whole: help, options from the line, the environment and a file, one line for each error, and completion."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import polite
from polite.cli import check as check_module
from polite.cli.main import ENVIRONMENT, main, parse
from polite.cli.options import named_host
from polite.cli.parser import parser, subcommands
from polite.cli.terminal import OPTIONS, spelled
from polite.errors import InvalidOption
from tests.support import run_python


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
    ended = run_python(program)

    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "closed\n", "")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "polite: interrupted\n"),
        (ExceptionGroup("a", [ExceptionGroup("b", [OSError("no port is free")])]), 2, "polite: no port is free\n"),
        (ExceptionGroup("a", [RuntimeError("a defect of ours")]), None, ""),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_neither_aiohttp_nor_rich(option):
    program = (
        "import sys\nfrom polite.cli.main import main\n"
        f"try:\n    main([{option!r}])\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'aiohttp', 'rich', 'aiodns'} & set(sys.modules)))"
    )
    done = run_python(program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("reason", polite.Reason)
def test_the_option_of_every_reason_is_named_without_python(reason):
    said = spelled(f"failed once; {reason.option} changes it ({reason.value})")
    assert not re.search(r"Policy|open_gate|[a-z]+_[a-z]+", said)
    option = OPTIONS.get(reason.option, "no command-line option")
    assert said.startswith(f"failed once; {option} changes it (")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no whole answer within FetchPolicy.timeout=7 s", "no whole answer within --timeout=7 s"),
        ("use FetchPolicy.allow_private or allowed_networks to permit it", "use --allow-private to permit it"),
        (
            "fe80::1 is blocked; only FetchPolicy.allowed_networks can permit it",
            "fe80::1 is blocked and never fetched: no option permits it",
        ),
        ("more than SitemapPolicy.max_files=5 files", "more than the limit of 5 files"),
        ("does not count (RobotsPolicy.keep_stale)", "does not count (the option keep stale)"),
        ("Retry-After 9 s, held to max_retry_after 5 s", "Retry-After 9 s, held to the limit on Retry-After 5 s"),
        ("max_tries=13", "--tries=13"),
        ("http://a.test/min_delay?max_hold=1 /max_hold", "http://a.test/min_delay?max_hold=1 /max_hold"),
    ],
)  # fmt: skip
def test_names_are_spelled_as_on_the_command_line_and_urls_are_not(text, said):
    assert spelled(text) == said


@pytest.mark.parametrize("command", [[], *([name] for name, _ in subcommands(parser()))])
def test_help_names_the_exit_statuses(command, capsys):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert "exit status: 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["crawl"], "invalid choice: 'crawl'"),
        (["check"], "URL"),
        (["check", "/x", "--agent", "1.0"], "no product: start it with one such as ExampleBot/1.0 (see polite"),
        (["check", "/x", "--agent", "Bot\nX-Evil: 1"], "at character 3"),
        (["check", "/x", "--dialect", "latin"], "the dialects are classic"),
        (["check", "/x", "--timeout", "nan"], " --timeout must be a number from 0.001 to 3600, got nan"),
        (["fetch", "/x", "--delay", "-1"], " --delay must be a finite number >= 0, got -1.0"),
        (["fetch", "/x", "--delay", "soon"], " --delay must be a number of seconds, got 'soon'"),
        (["fetch", "/x", "--concurrency", "0"], "--concurrency must be an integer from 1 to 10000, got 0"),
        (["fetch", "/x", "--back-off-on", "402"], "--back-off-on must be a set of statuses from 400 to 599, without 401"),
        (["fetch", "/x", "--back-off-on", "200"], "--back-off-on must be an integer from 400 to 599, got 200"),
        (["fetch", "/x", "--max-failures", "many"], "--max-failures must be an integer"),
        (["fetch", "/x", "--long-delay", "ignore"], "--long-delay: invalid choice"),
        (["fetch", "/x", "--status", "65536"], "--status must be an integer from 0 to 65535"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_status_2(arguments, says, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert says in err
    assert err.startswith("polite: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Example.com:127.0.0.1", ("example.com", "127.0.0.1")),
        ("example.com:443:127.0.0.1:8443", ("example.com:443", "127.0.0.1:8443")),
        ("example.com:[::1]", ("example.com", "[::1]")),
        ("example.com:443:[::1]:8443", ("example.com:443", "[::1]:8443")),
        *((f"example.com{rest}", None) for rest in ("", ":", ":::1", ":localhost", ":65536:127.0.0.1")),
        *((f"{name}:127.0.0.1", None) for name in ("", "127.0.0.1", "*.test")),
    ],
)
def test_each_form_names_a_host_and_its_address_and_anything_else_is_refused(text, named):
    if named is not None:
        assert named_host(text) == named
        return
    with pytest.raises(InvalidOption, match=r"HOST:PORT:ADDRESS"):
        named_host(text)


def test_check_and_explain_read_the_robots_of_the_named_address_unless_it_is_private(site, capsys):
    named = ["--resolve", f"example.com:{site.origin.removeprefix('http://')}", "http://example.com/no"]

    assert main(["check", *named]) == 3
    assert main(["explain", *named]) == 3
    assert "is not public, so it is blocked; use --allow-private to permit it" in capsys.readouterr().out
    assert site.asked == []
    assert main(["check", "--allow-private", *named]) == 1
    assert main(["explain", "--allow-private", *named]) == 1
    assert site.asked == ["/robots.txt", "/robots.txt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def written(folder):
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


# polite completion


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
