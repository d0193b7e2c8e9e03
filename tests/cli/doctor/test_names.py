"""`polite doctor`: what it says of a header, without a network."""

import json

import pytest

from polite.cli.main import main

GOOD = "AcmeBot/0.1 (+https://acme.dev/bot)"


def said(
    header: str, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, list[dict[str, str]]]:
    status = main(["doctor", "--offline", "--json", *arguments, header])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def worst(checks: list[dict[str, str]], practice: str = "2.2") -> list[tuple[str, str]]:
    of = [(check["verdict"], check["text"]) for check in checks if check["practice"] == practice]
    return [each for each in of if each[0] in ("warning", "problem")]


@pytest.mark.parametrize(
    "header",
    [
        GOOD,
        "Mozilla/5.0 (compatible; AcmeBot/0.1; +https://acme.dev/bot)",
        "Acme-News_Bot (see https://acme.dev/bot.)",
        "AcmeBot/0.1, https://acme.dev/bot; team@acme.dev",
    ],
)
def test_a_good_header_is_well(header: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, checks = said(header, capsys)

    assert status == 0
    assert worst(checks) == []


@pytest.mark.parametrize(
    ("header", "verdict", "says"),
    [
        ("My Bot/1.0 (+https://acme.dev/)", "warning", "addresses it as `my`, not as `My Bot`"),
        ("My Bot/1.0 (+https://acme.dev/)", "warning", "write MyBot, or My-Bot"),
        ("Acme.Bot/1.0 (+https://acme.dev/)", "warning", "addresses it as `acme`, not as `Acme.Bot`"),
        ("Acmebot2/1.0 (+https://acme.dev/)", "warning", "`Acmebot2` has digits"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0", "problem", "a browser's header"),
        ("python-requests/2.34", "problem", "`python-requests` names a piece of software"),
        ("Googlebot/2.1 (+https://acme.dev/)", "problem", "a crawler that sites know"),
        ("Crawler/1.0 (+https://acme.dev/)", "warning", "`Crawler` is a name that many crawlers have"),
        ("AcmeBot/1.0", "problem", "it has no URL"),
        ("AcmeBot/1.0 (bot@acme.dev)", "warning", "it has only a mail address"),
        ("AcmeBot/1.0 (+https://example.com/bot)", "warning", "is an address of examples"),
        ("AcmeBot/1.0 (+https://acme.test/bot)", "warning", "is an address of examples"),
        ("AcmeBot/1.0 (+http://acme.dev/bot)", "warning", "is not https"),
        ("AcmeBot/1.0 (+https://acme:dev/bot)", "problem", "the URL in it"),
        ("AcmeBot/1.0 (+https://user:secret@acme.dev/)", "ok", "it names a page: https://acme.dev/"),
        ("", "problem", "the User-Agent header is empty"),
        ("1/2", "problem", "names no product"),
        ("Acme\tBot (+https://acme.dev/)", "problem", "printable latin-1"),
    ],
)
def test_what_a_header_is_told(
    header: str, verdict: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, checks = said(header, capsys)

    of = [check for check in checks if says in check["text"]]
    assert [check["verdict"] for check in of] == [verdict]
    assert of[0]["practice"] == "2.2"
    assert status == (0 if verdict == "ok" else 1)
    assert "secret" not in str(checks)


def test_what_only_the_page_could_tell_is_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    _, checks = said(GOOD, capsys)

    open_ones = [(check["practice"], check["text"]) for check in checks if check["verdict"] == "yours"]
    assert [practice for practice, _ in open_ones] == ["2.4", "2.5", "2.6"]
    assert all("not looked for: --offline" in text for practice, text in open_ones if practice != "2.4")


def test_lines_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--offline", GOOD])

    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "2.2  ok       robots.txt addresses it as `AcmeBot`, a product token"
    assert [line[:3] for line in lines] == ["2.1", "2.2", "2.2", "2.3", "2.4", "2.5", "2.6"]
