"""`--resolve`: each form, what is refused, and where the requests of each command go."""

import argparse
import json

import pytest

from polite.cli.main import main, parse
from polite.cli.options import named_host
from polite.cli.parser import parser
from polite.errors import InvalidOption


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("example.com:127.0.0.1", ("example.com", "127.0.0.1")),
        ("Example.com:127.0.0.1", ("example.com", "127.0.0.1")),
        ("example.com:443:127.0.0.1", ("example.com:443", "127.0.0.1")),
        ("example.com:127.0.0.1:8443", ("example.com", "127.0.0.1:8443")),
        ("example.com:443:127.0.0.1:8443", ("example.com:443", "127.0.0.1:8443")),
        ("example.com:[::1]", ("example.com", "[::1]")),
        ("example.com:443:[::1]:8443", ("example.com:443", "[::1]:8443")),
    ],
)
def test_each_form_names_a_host_and_its_address(text: str, named: tuple[str, str]) -> None:
    assert named_host(text) == named


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "example.com:",
        ":127.0.0.1",
        "example.com:::1",
        "example.com:1:2::3",
        "example.com:localhost",
        "example.com:0:127.0.0.1",
        "example.com:65536:127.0.0.1",
        "127.0.0.1:127.0.0.2",
        "[::1]:127.0.0.1",
        "*.test:127.0.0.1",
        "*:127.0.0.1",
    ],
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"HOST:PORT:ADDRESS"):
        named_host(text)


def test_it_may_be_repeated_and_not_contradict_itself(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--resolve", "a.test:127.0.0.1", "--resolve", "b.test:127.0.0.2", "http://a.test/"]

    assert parse(command).resolve == {"a.test": "127.0.0.1", "b.test": "127.0.0.2"}
    with pytest.raises(SystemExit):
        parse([*command, "--resolve", "A.test:127.0.0.3"])
    assert "--resolve names a.test twice" in capsys.readouterr().err


def named(site, host: str = "example.com") -> list[str]:
    return ["--resolve", f"{host}:{site.origin.removeprefix('http://')}"]


def test_check_and_explain_read_the_robots_of_the_named_address(site, capsys):
    assert main(["check", "--allow-private", *named(site), "http://example.com/no"]) == 1
    assert main(["explain", "--allow-private", *named(site), "http://example.com/no"]) == 1
    assert site.asked == ["/robots.txt", "/robots.txt"]


def test_a_named_address_that_is_private_needs_the_option_that_the_message_names(site, capsys):
    assert main(["check", *named(site), "http://example.com/no"]) == 3
    assert "--allow-private" not in capsys.readouterr().err
    assert main(["explain", *named(site), "http://example.com/no"]) == 3
    assert (
        "127.0.0.1 is not public, so it is blocked; use --allow-private to permit it"
        in capsys.readouterr().out
    )
    assert site.asked == []


def test_fetch_gets_robots_and_pages_from_the_named_address(site, capsys):
    main(["fetch", "--quiet", "--delay", "0", "--allow-private", *named(site), "http://example.com/page"])

    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (record["url"], record["status"]) == ("http://example.com/page", 200)
    assert site.asked == ["/robots.txt", "/page"]


def test_a_file_of_rules_needs_no_named_host(rules):
    options = parser().parse_args(["check", "--robots", rules, "/no"])

    assert isinstance(options, argparse.Namespace)
    assert options.resolve is None
