"""A result as text, as an object, and as an exit status."""

import pytest

import polite
from polite.cli.check import as_object, as_text, exit_for, wants_colour
from polite.robots.result import Unreachable
from tests.support import Terminal

ROBOTS = polite.parse("User-agent: *\nDisallow: /no\nAllow: /no/b\n")
UNREACHABLE = polite.RuleSet.deny_all(
    polite.Reason.UNREACHABLE, access=Unreachable(polite.Reason.TIMEOUT, "http://x/robots.txt")
)


def test_an_object_names_the_rule_and_its_line():
    answer = ROBOTS.decide("Bot", "http://x/no")

    assert as_object("http://x/no", answer) == {
        "url": "http://x/no",
        "allowed": False,
        "reason": "RULE",
        "cause": None,
        "rule": "Disallow: /no",
        "line": 2,
        "undefined": False,
    }


def test_the_url_of_an_object_is_whole_canonical_and_without_credentials():
    url = f"http://me:secret@X.test:80/{'a' * 500}"

    assert as_object(url, ROBOTS.decide("Bot", url))["url"] == f"http://x.test/{'a' * 500}"


def test_an_object_without_a_rule_says_why_and_what_caused_it():
    answer = as_object("http://x/", UNREACHABLE.decide("/"))

    assert (answer["allowed"], answer["reason"], answer["cause"]) == (False, "UNREACHABLE", "TIMEOUT")
    assert (answer["rule"], answer["line"]) == (None, None)


def test_an_invalid_url_is_shown_without_its_password():
    error = polite.InvalidURL("http://me:secret@x:99999/", "the port is out of range")

    assert "secret" not in str(as_object("", error)) + as_text("", error)
    assert exit_for(error) == 2


def test_a_password_is_in_no_line():
    url = "http://me:secret@x/no"

    assert as_text(url, ROBOTS.decide("Bot", url)) == (
        "disallowed  http://x/no  disallowed by Disallow: /no (line 2)"
    )


def test_only_the_verdict_is_coloured():
    line = as_text("http://x/no/b", ROBOTS.decide("Bot", "http://x/no/b"), coloured=True)

    assert line == "\x1b[32mallowed    \x1b[0m http://x/no/b  allowed by Allow: /no/b (line 3)"


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert wants_colour(Terminal())
    assert not wants_colour(None)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_switched_off(name, value, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)

    assert not wants_colour(Terminal())
