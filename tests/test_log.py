"""Lines of the log have names and fields, show no secret, and do not become more because servers misbehave."""

import asyncio
import io
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polite
from polite.log import LineFilter, fields, scrubbed
from polite.pacing.outcome import Pause
from polite.robots.exchange import Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import RULES, opened, visit

ROOT = Path(__file__).resolve().parents[1]

log = logging.getLogger("polite")


@pytest.fixture
def shown():
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


PAGE = ROOT / "docs/reference/logging.md"


def documented() -> dict[str, str]:
    lines = PAGE.read_text().partition("## Fields")[0].splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    return {name: level for name, level, _ in rows}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at https://user:secret@site.test/a?token=secret: failed", "at https://site.test/a?..."),
        (
            "https://site.test/#access_token=secret and https://b.test/?q",
            "https://site.test/#... and https://b.test/?...",
        ),
        ("redis://user:secret@store.test/0", "redis://store.test/0"),
        ("'ftp://u:a'secret@site.test/x'", "'ftp://site.test/x'"),
        ("ftp://it's:a'secret@site.test/x", "ftp://site.test/x"),
        ("https://site.test/a?q=it's&token='secret", "https://site.test/a?..."),
        ("no URL: a//b?c, https://site.test/path/x: 404", "no URL: a//b?c, https://site.test/path/x: 404"),
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
        "://" * 300_000,
        "a" * 1_000_000,
        "a://" + "@" * 500_000,
        "a://" + "'a" * 200_000 + "@",
        "a://'" * 100_000,
    ):
        scrubbed(text)


SECRET = "https://user:secret@site.test/page?token=secret#secret"


def fail(*_):
    raise ValueError("http://user:secret@other.test/?secret")


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
    scripted, throttle = ScriptedTransport(script), SimpleNamespace(rest=lambda *_: Pause(0.0, "at first"))
    odd = SimpleNamespace(get=fail, close=scripted.close)
    options = {"listener": fail, "throttle": throttle, "pacing": polite.PacingPolicy(max_hold=60)}
    transports = {"http": scripted, "https": scripted, "odd": odd}
    async with opened(scripted, transports=transports, **options) as (gate, _):
        throttle.rest = fail
        gate.measure(SimpleNamespace(granted=fail, left=fail))
        gate.on_close(fail)
        frontier = polite.Frontier(gate, on_end=fail)
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
    wanted = "robots_hostile permit_reclaimed file_failed transport_failed listener_failed throttle_failed meter_failed"
    assert names >= {"robots_fetched", "on_end_failed", "on_close_failed", *wanted.split()}
    assert "Traceback" in text
    assert "'polite_url': 'https://site.test/page?...'" in text


def test_of_each_name_ten_lines_a_minute_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1_000):
        log.warning("host %d is odd", number, extra=fields("odd"))
        log.error("host %d is bad", number, extra=fields("bad"))

    found = [record.getMessage() for record in caplog.records]
    assert (len(found), found[0]) == (20, "host 0 is odd")
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
    for number in range(20):
        lines.filter(record_at(1_062.0 + number / 100))
    # A clock that is set back hides no lines.
    assert lines.filter(record_at(500.0))


def test_names_without_end_take_no_memory_without_end() -> None:
    lines = LineFilter()
    for number in range(5_000):
        lines.filter(record_at(0.0, f"name-{number}"))
    assert len(lines._windows) <= 1_000


@pytest.mark.virtual_time
async def test_events_are_logged_at_their_levels_and_hostile_sites_flood_nothing(caplog):
    script = {"https://site.test/robots.txt": Reply(200, RULES), "https://down.test/robots.txt": Reply(503)}
    blocked = Failed(polite.Reason.ADDRESS_REFUSED, "127.0.0.1 is private")
    script |= {f"https://host{number}.test/robots.txt": blocked for number in range(50)}
    pay = {"status": 402, "crawler_price": "USD 0.01"}
    licence = {"status": 401, "WWW_Authenticate": "License error=invalid_request"}
    with caplog.at_level(logging.DEBUG, logger="polite"):
        opening = opened(ScriptedTransport(script), pacing=polite.PacingPolicy(circuit_failures=1))
        async with opening as (gate, _):
            learned = [{"status": 429}, {"status": 200}] * 2
            for response in (*learned, {"status": 0}, {"status": 200}, pay, licence):
                await visit(gate, **response)  # type: ignore[arg-type]
            frontier = polite.Frontier(gate)
            await frontier.put("https://down.test/")
            task = asyncio.ensure_future(frontier.__anext__())
            await asyncio.sleep(5)
            task.cancel()
            for number in range(50):
                assert not (await gate.check(f"https://host{number}.test/")).allowed

    levels = documented()
    logged = {vars(record)["polite_event"]: record.levelname for record in caplog.records}
    assert logged == {name: levels[name] for name in logged}
    names = "back_off pace_learned circuit_opened circuit_closed origin_postponed payment_required license_required robots_hostile"
    assert set(logged) == {"robots_fetched", *names.split()}
    # Hostile sites cause no line for each of them.
    assert [vars(record)["polite_event"] for record in caplog.records].count("robots_hostile") == 10
