"""Lines of the log have names and fields, show no secret, and do not become more because servers misbehave."""

import ast
import asyncio
import io
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polite
from polite.events import Event, RobotsFetched
from polite.log import LineFilter, fields, scrubbed
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import RULES, opened, visit
from tests.support import scripted_gate

ROOT = Path(__file__).resolve().parents[1]
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR"}

log = logging.getLogger("polite")


@pytest.fixture
def shown() -> Iterator[io.StringIO]:
    """What a handler writes that shows everything, fields included."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)

    class Everything(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            found = {name: value for name, value in vars(record).items() if name.startswith("polite_")}
            return f"{record.levelname} {super().format(record)} {found}"

    handler.setFormatter(Everything("%(message)s"))
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.DEBUG)
    yield stream
    log.setLevel(level)
    log.removeHandler(handler)


# Lines and the reference.


@cache
def calls() -> list[tuple[Path, ast.Call]]:
    """Each call of a logger, but those of Scrapy's integration, which are about settings."""
    found: list[tuple[Path, ast.Call]] = []
    for path in sorted((ROOT / "polite").rglob("*.py")):
        if "scrapy" in path.parts:
            continue
        found.extend(
            (path, node)
            for node in ast.walk(ast.parse(path.read_text()))
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in METHODS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in {"log", "_log"}
            )
        )
    return found


def documented() -> dict[str, str]:
    lines = (ROOT / "docs/reference/logging.md").read_text().partition("## Fields")[0].splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    return {name: level for name, level, _ in rows}


@pytest.mark.slow("long texts")
def test_each_line_has_a_name() -> None:
    nameless = [
        f"{path.name}:{call.lineno}"
        for path, call in calls()
        if all(keyword.arg != "extra" for keyword in call.keywords)
    ]

    assert nameless == []


def test_the_reference_has_each_line() -> None:
    named = {
        name
        for path in (ROOT / "polite").rglob("*.py")
        if path.name != "log.py"
        for name in re.findall(r'\bfields\(\s*"(\w+)"', path.read_text())
        if "polite.log import" in path.read_text()
    }

    assert named == set(documented())


def test_the_reference_has_the_level_of_each_line() -> None:
    levels: dict[str, str] = {}
    for path, call in calls():
        text = path.read_text().splitlines()
        # The name is in the call, or in a line or two above it.
        near = "\n".join(text[max(0, call.lineno - 6) : call.end_lineno])
        assert isinstance(call.func, ast.Attribute)
        if (names := re.findall(r'\bfields\(\s*"(\w+)"', near)) and call.func.attr in LEVELS:
            levels.setdefault(names[-1], LEVELS[call.func.attr])

    assert len(levels) > 30
    assert levels == {name: level for name, level in documented().items() if name in levels}


def test_the_reference_has_each_field() -> None:
    page = (ROOT / "docs/reference/logging.md").read_text().partition("## Fields")[2]
    every = fields(
        "name", origin="o", url="https://u.test/", host="h", store="s", error=OSError(), reason="r", count=1
    )

    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [*every, "polite_left_out"]


def test_what_is_not_given_is_no_field() -> None:
    assert fields("name") == {"polite_event": "name"}
    assert fields("name", count=0, error=KeyError("x")) == {
        "polite_event": "name",
        "polite_error": "KeyError",
        "polite_count": 0,
    }


# Secrets.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at https://user:secret@site.test/a?token=secret: failed", "at https://site.test/a?..."),
        ("https://site.test/a?q=1 and https://b.test/?q", "https://site.test/a?... and https://b.test/?..."),
        ("https://site.test/#access_token=secret", "https://site.test/#..."),
        ("redis://user:secret@store.test/0", "redis://store.test/0"),
        ("'ftp://u:secret@site.test/x'", "'ftp://site.test/x'"),
        ("'ftp://u:a'secret@site.test/x'", "'ftp://site.test/x'"),
        ("ftp://it's:a'secret@site.test/x", "ftp://site.test/x"),
        ("https://site.test/a?q=it's&token='secret", "https://site.test/a?..."),
        ("what? no URL: a//b?c", "what? no URL: a//b?c"),
        ("https://site.test/path/x: 404", "https://site.test/path/x: 404"),
    ],
)
def test_each_url_of_a_text_is_shown_without_secrets(text: str, expected: str) -> None:
    assert scrubbed(text).startswith(expected)
    assert "secret" not in scrubbed(text)


@given(st.text("ab:/?#@. \n'", max_size=30), st.sampled_from(["http", "https", "redis", "a+b"]))
def test_whatever_is_around_a_url_its_query_is_not_shown(around: str, scheme: str) -> None:
    assert "SECRET" not in scrubbed(f"{around} {scheme}://u:SECRET@host/p?k=SECRET {around}")


def test_a_long_text_is_scrubbed_in_linear_time() -> None:
    # Quadratic, each of these would take minutes.
    for text in (
        *("://" * 300_000, "a" * 1_000_000, "http://" * 100_000, "a://" + "@" * 500_000),
        *("a://" + "'" * 300_000, "a://" + "'a" * 200_000 + "@", "a://'" * 100_000),
    ):
        scrubbed(text)


SECRET = "https://user:secret@site.test/page?token=secret#secret"


class FailingTransport:
    """A transport that raises, with the URL that it was to fetch."""

    async def get(self, ask: Any) -> Reply | Failed:
        raise OSError(f"no way to {ask.target.url}?token=secret")

    async def close(self) -> None: ...


def failing_listener(event: Event, /) -> None:
    raise ValueError(f"{event} https://user:secret@other.test/?secret")


class FailingThrottle:
    opened = False

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        if self.opened:
            raise KeyError("https://user:secret@other.test/?secret")
        return Pause(0.0, "until the gate is open")


class FailingMeter:
    def granted(self, waited_s: float, task: polite.Task | None) -> None:
        raise ValueError("http://user:secret@meter.test/?secret")

    def left(self, status: int | None, held_s: float) -> None: ...


@pytest.mark.virtual_time
async def test_a_crawl_with_credentials_and_tokens_in_its_urls_logs_none(shown: io.StringIO) -> None:
    location = "http://user:secret@127.0.0.1/?token=secret"
    script = {
        "https://site.test/robots.txt": Reply(200, RULES),
        "https://site.test/sitemap.xml": OSError("https://user:secret@site.test/?token=secret"),
        "https://moved.test/robots.txt": Reply(301, location=location),
        "http://127.0.0.1/?token=secret": Failed(polite.Reason.ADDRESS_REFUSED, f"blocked: {location}"),
        "https://busy.test/robots.txt": Reply(503, retry_after="60"),
    }

    def failing_end(task: polite.Task, outcome: object) -> None:
        raise ValueError(task.url)

    scripted = ScriptedTransport(script)
    throttle = FailingThrottle()
    options = {"listener": failing_listener, "throttle": throttle, "pacing": polite.PacingPolicy(max_hold=60)}
    transports = {"http": scripted, "https": scripted, "odd": FailingTransport()}
    async with opened(scripted, transports=transports, **options) as (gate, _):
        throttle.opened = True
        gate.measure(FailingMeter())
        gate.on_close(lambda: failing_listener(RobotsFetched(SECRET, "", "", None, 0, 0.0, 0.0)))
        frontier = polite.Frontier(gate, on_end=failing_end)
        await frontier.put_many([SECRET, "https://user:secret@[::1?secret"])
        async with await frontier.__anext__() as permit:
            permit.report(status=429)
        for url in (
            SECRET,
            "https://user:secret@moved.test/?secret",
            "https://u:secret@busy.test/",
            "odd://u:secret@h/",
        ):
            await gate.check(url)
        assert [entry async for entry in gate.sitemaps("https://user:secret@site.test/")] == []
        permit = await gate.acquire(SECRET)
        await asyncio.sleep(100)
        assert not permit.valid
        permit.leave()

    text = shown.getvalue()
    names = set(re.findall(r"'polite_event': '(\w+)'", text))
    assert "secret" not in text
    assert names >= {
        "robots_fetched",
        "robots_hostile",
        "transport_failed",
        "listener_failed",
        "throttle_failed",
        "meter_failed",
        "on_end_failed",
        "on_close_failed",
        "permit_reclaimed",
        "file_failed",
    }
    assert "Traceback" in text
    assert "'polite_url': 'https://site.test/page?...'" in text


def test_a_line_without_secrets_keeps_its_template_and_its_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log.warning("a page of %s failed", "https://site.test")
    log.warning("a page of %s failed", "https://u:p@site.test")

    plain, changed = caplog.records
    assert (plain.msg, plain.args) == ("a page of %s failed", ("https://site.test",))
    assert (changed.getMessage(), changed.args) == ("a page of https://site.test failed", ())


def test_a_line_whose_arguments_do_not_fit_is_left_to_the_handler() -> None:
    record = log.makeRecord("polite", logging.WARNING, "f", 1, "%d", ("no number",), None)

    assert LineFilter().filter(record)
    assert record.msg == "%d"


# How many.


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_of_each_name_ten_lines_a_minute_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1_000):
        log.warning("host %d is odd", number, extra=fields("odd"))
        log.error("host %d is bad", number, extra=fields("bad"))

    found = messages(caplog)
    assert len(found) == 20
    assert found[0] == "host 0 is odd"
    assert found[-2:] == [
        "host 9 is odd (more like it are left out for a minute)",
        "host 9 is bad (more like it are left out for a minute)",
    ]


def record_at(created: float, name: str = "odd", level: int = logging.WARNING) -> logging.LogRecord:
    record = log.makeRecord("polite", level, "f", 1, "a line", (), None, extra=fields(name))
    record.created = created
    return record


def test_after_a_minute_the_next_line_says_how_many_were_left_out() -> None:
    lines = LineFilter()
    shown = [lines.filter(record_at(1_000.0 + number / 100)) for number in range(100)]

    assert all(lines.filter(record_at(1_000.0, level=logging.INFO)) for _ in range(100))
    late = record_at(1_061.0)
    assert (sum(shown), lines.filter(late)) == (10, True)
    assert late.getMessage() == "a line (90 more like it were left out)"
    assert vars(late)["polite_left_out"] == 90
    later = record_at(1_062.0)
    assert lines.filter(later)
    assert later.getMessage() == "a line"


def test_a_clock_that_is_set_back_hides_no_lines() -> None:
    lines = LineFilter()
    for _ in range(20):
        lines.filter(record_at(5_000.0))

    assert lines.filter(record_at(1_000.0))


def test_names_without_end_take_no_memory_without_end() -> None:
    lines = LineFilter()
    for number in range(5_000):
        lines.filter(record_at(0.0, f"name-{number}"))

    assert len(lines._windows) <= 1_000


@pytest.mark.virtual_time
async def test_hostile_sites_cause_no_line_per_site(caplog: pytest.LogCaptureFixture) -> None:
    blocked = Failed(polite.Reason.ADDRESS_REFUSED, "127.0.0.1 is private")
    script = {f"https://host{number}.test/robots.txt": blocked for number in range(200)}
    async with scripted_gate(script) as gate:
        for number in range(200):
            assert not (await gate.check(f"https://host{number}.test/")).allowed

    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 10


@pytest.mark.virtual_time
async def test_events_are_logged_at_their_levels(caplog: pytest.LogCaptureFixture) -> None:
    script = {"https://site.test/robots.txt": Reply(200, RULES), "https://down.test/robots.txt": Reply(503)}
    pay = {"status": 402, "crawler_price": "USD 0.01"}
    licence = {"status": 401, "WWW_Authenticate": "License error=invalid_request"}
    with caplog.at_level(logging.DEBUG, logger="polite"):
        async with opened(ScriptedTransport(script), pacing=polite.PacingPolicy(circuit_failures=1)) as (
            gate,
            _,
        ):
            for response in ({"status": 429}, {"status": 0}, {"status": 200}, pay, licence):
                await visit(gate, **response)  # type: ignore[arg-type]
            frontier = polite.Frontier(gate)
            await frontier.put("https://down.test/")
            task = asyncio.ensure_future(frontier.__anext__())
            await asyncio.sleep(5)
            task.cancel()

    levels = documented()
    logged = {vars(record)["polite_event"]: record.levelname for record in caplog.records}
    assert logged == {name: levels[name] for name in logged}
    assert set(logged) == {
        "robots_fetched",
        "back_off",
        "circuit_opened",
        "circuit_closed",
        "origin_postponed",
        "payment_required",
        "license_required",
    }


# Without any configuration.

PROGRAM = """
import asyncio
import polite
from polite.robots.exchange import Failed, Reply
from polite.testing import ScriptedTransport

async def main():
    blocked = Failed(polite.Reason.ADDRESS_REFUSED, "blocked")
    script = {"https://a.test/robots.txt": Reply(503), "https://b.test/robots.txt": blocked}
    transport = ScriptedTransport(script)
    async with polite.open_gate("TestBot/1.0", transports={"https": transport}) as gate:
        for url in ("https://a.test/", "https://b.test/"):
            await gate.check(url)

asyncio.run(main())
"""


def test_a_program_that_configures_nothing_sees_warnings_and_nothing_else() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert ran.stdout == ""
    assert [line[:41] for line in ran.stderr.splitlines()] == ["the robots.txt of https://b.test was not "]
