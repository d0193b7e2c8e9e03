"""Options: each command has help, wrong usage is one line, and each form of --resolve."""

import pytest

from polite.cli.main import main, parse
from polite.cli.options import named_host
from polite.cli.parser import parser, subcommands
from polite.errors import InvalidOption


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
        (
            ["check", "/x", "--agent", "1.0"],
            "no product: start it with one such as ExampleBot/1.0 (see polite",
        ),
        (["check", "/x", "--agent", "Bot\nX-Evil: 1"], "at character 3"),
        (["check", "/x", "--dialect", "latin"], "the dialects are classic"),
        (["check", "/x", "--timeout", "nan"], " --timeout must be a number from 0.001 to 3600, got nan"),
        (["fetch", "/x", "--delay", "-1"], " --delay must be a finite number >= 0, got -1.0"),
        (["fetch", "/x", "--delay", "soon"], " --delay must be a number of seconds, got 'soon'"),
        (["fetch", "/x", "--concurrency", "0"], "--concurrency must be an integer from 1 to 10000, got 0"),
        (
            ["fetch", "/x", "--back-off-on", "402"],
            "--back-off-on must be a set of statuses from 400 to 599, without 401",
        ),
        (
            ["fetch", "/x", "--back-off-on", "200"],
            "--back-off-on must be an integer from 400 to 599, got 200",
        ),
        (["fetch", "/x", "--max-failures", "many"], "--max-failures must be an integer"),
        (["fetch", "/x", "--long-delay", "ignore"], "--long-delay: invalid choice"),
        (["fetch", "/x", "--status", "65536"], "--status must be an integer from 0 to 65535"),
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
def test_each_form_names_a_host_and_its_address_and_anything_else_is_refused(
    text: str, named: tuple[str, str] | None
) -> None:
    if named is not None:
        assert named_host(text) == named
        return
    with pytest.raises(InvalidOption, match=r"HOST:PORT:ADDRESS"):
        named_host(text)


def test_it_may_be_repeated_and_not_contradict_itself(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--resolve", "a.test:127.0.0.1", "--resolve", "b.test:127.0.0.2", "http://a.test/"]

    assert parse(command).resolve == {"a.test": "127.0.0.1", "b.test": "127.0.0.2"}
    with pytest.raises(SystemExit):
        parse([*command, "--resolve", "A.test:127.0.0.3"])
    assert "--resolve names a.test twice" in capsys.readouterr().err


def test_check_and_explain_read_the_robots_of_the_named_address_unless_it_is_private(site, capsys):
    named = ["--resolve", f"example.com:{site.origin.removeprefix('http://')}", "http://example.com/no"]

    assert main(["check", *named]) == 3
    assert main(["explain", *named]) == 3
    assert "is not public, so it is blocked; use --allow-private to permit it" in capsys.readouterr().out
    assert site.asked == []
    assert main(["check", "--allow-private", *named]) == 1
    assert main(["explain", "--allow-private", *named]) == 1
    assert site.asked == ["/robots.txt", "/robots.txt"]
