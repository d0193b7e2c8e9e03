"""Messages of a command name the command line's options, never Python's."""

import argparse
import re
from dataclasses import fields

import pytest

import polite
from polite.cli.option_names import OPTION_NAMES, command_line_text, option_of
from polite.cli.parser import parser

POLICIES = [polite.FetchPolicy, polite.RobotsPolicy, polite.PacingPolicy, polite.sitemaps.SitemapPolicy]
PYTHON_NAMES = re.compile(r"Policy|open_gate|Frontier\.|SqliteStore|max_tries|[a-z]+_[a-z]+")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_field_of_a_policy_has_an_option_or_plain_words(policy):
    named = {name.partition(".")[2] for name in OPTION_NAMES if name.startswith(f"{policy.__name__}.")}

    assert named == {field.name for field in fields(policy) if field.init}


def test_every_option_of_the_table_is_one_of_the_command_line():
    (subcommands,) = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    known = {
        option
        for subcommand in subcommands.choices.values()
        for action in subcommand._actions
        for option in action.option_strings
    }

    assert {name for name in OPTION_NAMES.values() if name.startswith("--")} <= known


@pytest.mark.parametrize("reason", polite.Reason)
def test_the_option_of_every_reason_is_named_without_python(reason):
    said = command_line_text(f"failed once; {reason.option} changes it ({reason.option})")

    assert not PYTHON_NAMES.search(said)
    assert said.startswith(
        f"failed once; {option_of(reason.option) or 'no command-line option'} changes it ("
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no whole answer within FetchPolicy.timeout=7 s", "no whole answer within --timeout=7 s"),
        (
            "use FetchPolicy.allow_private or allowed_networks to permit it",
            "use --allow-private to permit it",
        ),
        (
            "fe80::1 is blocked; only FetchPolicy.allowed_networks can permit it",
            "fe80::1 is blocked and never fetched: no option permits it",
        ),
        ("FetchPolicy.max_redirects=5 exceeded", "the limit on redirects of robots.txt 5 exceeded"),
        ("min_delay 1 s", "the least delay 1 s"),
        ("(min_delay 1 s)", "(the least delay 1 s)"),
        (
            "Retry-After 9 s, held to max_retry_after 5 s",
            "Retry-After 9 s, held to the limit on Retry-After 5 s",
        ),
        ("max_tries=13", "too many attempts (--tries)"),
        ("Frontier.max_waiting=3", "the limit on waiting URLs=3"),
        ("http://a.test/min_delay?max_hold=1 /max_hold", "http://a.test/min_delay?max_hold=1 /max_hold"),
        ("nothing to translate", "nothing to translate"),
    ],
)
def test_names_are_translated_and_urls_are_not(text, said):
    assert command_line_text(text) == said
