"""`polite fetch` from its command line to the server's own log, in virtual time."""

import asyncio
import gzip
import hashlib
import json
import signal
import sys
from pathlib import Path

import pytest
from aiohttp import web

from polite.cli.fetch import command as command_module
from polite.cli.fetch import crawl as crawl_module
from polite.cli.fetch import run as run_module
from polite.cli.fetch.folder import Folder
from polite.cli.fetch.page import AddressBlocked, Pages
from polite.cli.fetch.progress import Progress
from polite.cli.fetch.record import Records
from polite.cli.option_names import command_line_text
from polite.compose import open_gate
from polite.errors import Overloaded
from polite.frontier.frontier import Frontier
from polite.pacing.policy import PacingPolicy
from polite.robots.agent import UserAgent
from polite.robots.fetching.exchange import Reply
from polite.robots.policy import FetchPolicy
from polite.testing import ScriptedTransport
from polite.transports.http import HttpTransport
from tests.cli.fetch.conftest import ROBOTS


async def _drop(request):
    request.transport.close()
    return web.Response()


def _raw(octets):
    """Send these octets, valid HTTP or not, and close the connection."""

    async def answer(request):
        request.transport.write(octets)
        request.transport.close()
        return web.Response()

    return answer


def _leave_room_for(urls, monkeypatch):
    monkeypatch.setattr(command_module, "_IN_MEMORY", urls)
    monkeypatch.setattr(crawl_module, "_MAX_CONCURRENT_PUTS", 1)


def test_each_url_leaves_one_record_and_its_body_in_the_folder(site):
    assert site.run("/a", "/b", "/a") == 0

    assert list(site.records) == ["/a", "/b"]
    record = site.records["/a"]
    assert (record["outcome"], record["status"], record["length"], record["tries"]) == ("fetched", 200, 7, 1)
    assert record["headers"] == {"content-type": "text/plain; charset=utf-8"}
    assert record["sha256"] == hashlib.sha256(b"page /a").hexdigest()
    assert (site.folder / record["file"]).read_bytes() == b"page /a"
    assert record["body"] is None
    assert record["fetched_at"].startswith("2023-11-14T22:13:2")


def test_pages_of_an_origin_come_a_delay_apart_and_after_robots_txt(site):
    site.run("--delay", "3", "/a", "/b", "/c")

    (queued_at, first), *_ = site.asked
    assert first == "/robots.txt"
    assert [round(at - queued_at) for at in site.times] == [3, 6, 9]
    assert site.records["/c"]["waited_s"] >= 9


def test_records_go_to_standard_output_when_no_folder_is_named(site):
    assert site.run("/a", output=False) == 0

    (record,) = map(json.loads, site.out.splitlines())
    assert (record["url"], record["file"]) == (f"{site.origin}/a", None)


def test_a_refused_url_says_by_which_line_and_is_not_asked_for(site):
    assert site.run("/no/diary", "/a") == 1

    assert site.records["/no/diary"] == {
        "url": f"{site.origin}/no/diary",
        "outcome": "refused",
        "reason": "RULE",
        "line": 2,
    }
    assert site.paths == ["/a"]


def test_what_is_no_url_spoils_itself_only(site):
    assert site.run("nonsense", "ftp://127.0.0.1/x", "/a") == 2

    assert site.records["nonsense"]["outcome"] == "invalid"
    assert site.records["ftp://127.0.0.1/x"]["reason"] == "only http and https pages are fetched"
    assert site.records["/a"]["outcome"] == "fetched"


def test_urls_come_from_standard_input(site, feed):
    feed(f"{site.origin}/a\n\n\xff\n{site.origin}/b\n".encode("latin-1"))

    assert site.run("-") == 2
    assert site.paths == ["/a", "/b"]


def test_an_origin_whose_rules_cannot_be_had_is_given_up_after_so_many_tries(site):
    site.pages["/robots.txt"] = [{"status": 500}]

    assert site.run("--tries", "2", "/a") == 3

    assert site.records["/a"]["outcome"] == "given up"
    assert site.records["/a"]["reason"] == "SERVER_ERROR"
    assert len(site.asked) == 2


def test_a_private_address_is_blocked_by_default(site):
    assert site.run("/a", private=False) == 3

    assert site.records["/a"]["reason"] == "ADDRESS_REFUSED"
    assert site.asked == []
    assert site.took_s < 1


def test_a_page_that_leads_to_a_private_address_is_not_asked_for_again(site, monkeypatch):
    async def no_rules(self, ask):
        return Reply(404)

    monkeypatch.setattr(HttpTransport, "get", no_rules)

    assert site.run("/a", private=False) == 3

    record = site.records["/a"]
    assert (record["outcome"], record["tries"]) == ("failed", 1)
    assert "127.0.0.1 is not public and blocked; use --allow-private to permit it" in record["reason"]


def test_no_option_permits_a_metadata_service(site, caplog):
    assert site.run("http://169.254.169.254/") == 3

    assert site.records["http://169.254.169.254/"]["reason"] == "ADDRESS_REFUSED"
    assert "169.254.169.254 is blocked; no option permits it" in command_line_text(caplog.text)


async def test_a_name_that_leads_elsewhere_after_its_robots_txt_is_not_followed_there():
    async with (
        Pages(UserAgent("Bot/1.0"), FetchPolicy(), connections=1) as pages,
        open_gate(
            "Bot/1.0", transports={"http": ScriptedTransport({})}, pacing=PacingPolicy(min_delay=0)
        ) as gate,
        gate.permit("http://127.0.0.1:9/") as permit,
    ):
        with pytest.raises(AddressBlocked, match="127.0.0.1 is not public and blocked"):
            await pages.get(permit)


def test_a_redirect_is_followed_in_its_own_turn(site):
    site.pages["/old"] = [{"status": 301, "headers": {"Location": "/new"}}]

    assert site.run("--delay", "5", "/old") == 0

    assert site.paths == ["/old", "/new"]
    assert site.times[1] - site.times[0] >= 5
    assert site.records["/old"]["location"] == f"{site.origin}/new"
    assert site.records["/new"]["from"] == f"{site.origin}/old"


def test_a_redirect_to_what_is_disallowed_is_not_followed(site):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": "/no"}}]

    assert site.run("/old") == 1
    assert site.paths == ["/old"]
    assert site.records["/no"]["outcome"] == "refused"


@pytest.mark.parametrize(("most", "asked"), [("0", 1), ("2", 3)])
def test_redirects_in_a_row_are_bounded(most, asked, site):
    for number in range(9):
        site.pages[f"/{number}"] = [{"status": 307, "headers": {"Location": f"/{number + 1}"}}]

    site.run("--max-redirects", most, "/0")

    assert len(site.paths) == asked
    last = site.records[site.paths[-1]]
    assert last["reason"] == f"not followed: more than {most} redirects (--max-redirects)"


def test_a_redirect_to_itself_is_no_second_request(site):
    site.pages["/a"] = [{"status": 302, "headers": {"Location": "/a"}}]

    assert site.run("/a") == 0
    assert site.paths == ["/a"]


@pytest.mark.parametrize(("location", "says"), [("ftp://x/y", "only http"), ("http://x:99999/", "port")])
def test_a_redirect_to_nowhere_is_told_and_not_followed(location, says, site):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": location}}]

    assert site.run("/old") == 0
    assert site.records["/old"]["reason"].startswith("not followed: ")
    assert says in site.records["/old"]["reason"]


def test_a_redirect_for_which_there_is_no_room_is_asked_for_again(site, monkeypatch):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": "/new"}}]
    put, full = Frontier.put, [True]

    async def put_with_room_later(self, url, **options):
        if url.endswith("/new") and full:
            full.pop()
            raise Overloaded("no room")
        return await put(self, url, **options)

    monkeypatch.setattr(Frontier, "put", put_with_room_later)

    assert site.run("/old") == 0
    assert site.paths == ["/old", "/old", "/new"]
    assert site.records["/new"]["from"] == f"{site.origin}/old"


def test_a_long_list_waits_until_there_is_room(site, monkeypatch):
    _leave_room_for(1, monkeypatch)

    assert site.run("/a", "/b", "/c") == 0
    assert site.paths == ["/a", "/b", "/c"]


def test_a_busy_page_is_asked_for_again_when_the_server_said(site):
    site.pages["/busy"] = [{"status": 503, "headers": {"Retry-After": "40"}}, {"text": "now"}]

    assert site.run("/busy") == 0

    assert site.times[1] - site.times[0] >= 40
    assert site.records["/busy"]["tries"] == 2
    assert site.records["/busy"]["status"] == 200


def test_a_page_that_stays_busy_is_recorded_as_it_is(site):
    site.pages["/busy"] = [{"status": 503, "text": "busy"}]

    assert site.run("--tries", "2", "/busy") == 0
    assert (site.records["/busy"]["status"], site.records["/busy"]["tries"]) == (503, 2)
    assert len(site.paths) == 2


def test_a_page_that_never_answers_has_failed_after_its_tries_and_no_hidden_ones(site):
    site.pages["/gone"] = [_drop]

    assert site.run("/gone") == 3
    assert site.records["/gone"]["outcome"] == "failed"
    assert "ConnectionLost" in site.records["/gone"]["reason"]
    assert len(site.paths) == 3


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"099 X", "status 99 is not a final response"),
        (b"000", "status 0 is not a final response"),
        (b"101 Switching Protocols", "status 101 is not a final response"),
    ],
)
def test_a_page_whose_status_means_nothing_is_asked_for_again_and_has_failed(head, says, site):
    site.pages["/odd"] = [_raw(b"HTTP/1.1 " + head + b"\r\nContent-Length: 0\r\n\r\n")]

    assert site.run("/odd", "/a") == 3
    assert (site.records["/odd"]["outcome"], site.records["/a"]["outcome"]) == ("failed", "fetched")
    assert says in site.records["/odd"]["reason"]
    assert site.paths.count("/odd") == 3


def test_a_robots_txt_whose_status_means_nothing_ends_no_run(site):
    site.pages[ROBOTS] = [_raw(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n")]

    assert site.run("/a") == 3
    assert site.records["/a"]["reason"] == "ODD_STATUS"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/ü?€".encode(), "/%C3%BC?%E2%82%AC"),
        (b"/\xff\xfe", "/%FF%FE"),
        (b"/%0d%0aX:%20y", "/%0d%0aX:%20y"),
    ],
)
def test_a_redirect_leads_to_the_octets_that_the_server_sent(location, path, site):
    site.pages["/old"] = [
        _raw(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
    ]

    site.run("/old")

    assert site.records["/old"]["location"] == f"{site.origin}{path}"


def test_a_page_that_takes_too_long_has_failed(site):
    async def hang(request):
        await asyncio.sleep(1_000)

    site.pages["/slow"] = [hang]

    assert site.run("--timeout", "7", "--tries", "1", "/slow") == 3
    assert site.records["/slow"]["reason"] == "TimeoutError: no complete response within 7 s (--timeout)"


@pytest.mark.parametrize(
    ("answer", "kept", "body"),
    [
        ({"body": b"x" * 10}, b"x" * 10, None),
        ({"body": b"x" * 11}, b"x" * 10, "capped"),
        ({"body": gzip.compress(b"x" * 10), "headers": {"Content-Encoding": "gzip"}}, b"x" * 10, "capped"),
        ({"body": b"brotli", "headers": {"Content-Encoding": "br"}}, b"brotli", "unknown coding"),
        ({"body": b"brotli longer", "headers": {"Content-Encoding": "br"}}, b"brotli lon", "capped"),
        ({"body": b"no gzip", "headers": {"Content-Encoding": "gzip"}}, b"", "corrupt"),
    ],
)
def test_a_body_is_kept_up_to_the_limit_decoded_or_not(answer, kept, body, site):
    site.pages["/a"] = [answer]

    site.run("--max-bytes", "10", "/a")

    record = site.records["/a"]
    assert (record["length"], record["body"]) == (len(kept), body)
    assert record["file"] is None if not kept else (site.folder / record["file"]).read_bytes() == kept


def test_a_bomb_is_cut_where_it_is_decoded(site):
    bomb = gzip.compress(b"\0" * 1_000_000)
    site.pages["/a"] = [{"body": bomb, "headers": {"Content-Encoding": "gzip"}}]

    site.run("--max-bytes", "2000", "/a")

    assert (site.records["/a"]["length"], site.records["/a"]["body"]) == (2_000, "capped")


def test_a_body_that_breaks_off_says_so(site):
    async def cut(request):
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.close()
        return response

    site.pages["/a"] = [cut]

    site.run("/a")

    assert (site.records["/a"]["length"], site.records["/a"]["body"]) == (4, "cut short")


def test_a_list_of_nothing_is_wrong_usage(site):
    assert site.run() == 2
    assert site.err == "polite: fetch: no URLs given; name them, or use - to read them from standard input\n"


def test_records_of_another_run_are_not_mixed_with(site):
    site.run("/a")

    assert site.run("/b") == 2
    assert "records.jsonl already exists; choose another folder, or continue it with --resume" in site.err
    assert list(site.records) == ["/a"]


# Interrupts.


def test_an_interrupt_finishes_what_is_under_way(site):
    async def stop(request):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(2)
        return web.Response(text="finished")

    site.pages["/stop"] = [stop]
    before = signal.getsignal(signal.SIGINT)

    assert site.run("/stop", "/a", "/b") == 130

    assert list(site.records) == ["/stop"]
    assert site.paths == ["/stop"]
    assert "polite: finishing requests in flight; interrupt again to stop at once\n" in site.err
    assert site.err.endswith("interrupted; 2 waiting URLs are lost (--resume keeps them)\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("times", "shortest"), [(1, 11), (2, 3)])
def test_an_interrupt_waits_for_a_bounded_time_and_the_second_not_at_all(times, shortest, site):
    async def hang(request):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(2)
        await asyncio.sleep(1_000)

    site.pages["/hang"] = [hang]

    assert site.run("--timeout", "500", "/hang") == 130
    assert site.records == {}
    assert shortest <= site.took_s <= shortest + 1


def test_sigterm_is_an_interrupt_with_a_status_of_its_own(site):
    async def terminated(request):
        signal.raise_signal(signal.SIGTERM)
        return web.Response(text="the last one")

    site.pages["/stop"] = [terminated]

    assert site.run("/stop", "/a") == 143
    assert site.records["/stop"]["outcome"] == "fetched"
    assert site.err.endswith("interrupted; 1 waiting URL is lost (--resume keeps them)\n")


@pytest.mark.parametrize(("presses", "closed"), [(1, True), (2, True), (3, False)])
def test_an_interrupt_while_files_are_closed_lets_them_be_closed(presses, closed, site, monkeypatch):
    ended = []

    async def close(self):
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(1)
        ended.append(True)

    monkeypatch.setattr(Folder, "close", close)

    assert site.run("/a") == 130
    assert bool(ended) is closed
    assert site.records["/a"]["outcome"] == "fetched"


def test_an_interrupt_while_the_list_is_still_coming_ends_the_list(site, monkeypatch):
    async def stop(request):
        signal.raise_signal(signal.SIGINT)
        return web.Response()

    site.pages["/a"] = [stop]
    _leave_room_for(1, monkeypatch)

    assert site.run("/a", "/b", "/c") == 130
    assert "/c" not in site.paths
    assert site.err.endswith(
        "are lost (--resume keeps them); the list was not read to its end, so pass it again\n"
    )


# Write errors.


def test_a_disk_that_takes_no_body_ends_the_run_with_one_line(site, monkeypatch):
    def full(self, body):
        raise OSError(28, "No space left on device", "bodies/ab")

    monkeypatch.setattr(Folder, "_write", full)

    assert site.run("--quiet", "/a", "/b") == 2
    assert site.err == "polite: bodies/ab: No space left on device\n"
    assert site.records == {}


def test_a_refusal_that_cannot_be_written_ends_the_run_with_one_line(site, monkeypatch):
    def full(self, url, outcome, **more):
        raise OSError(28, "No space left on device", "records.jsonl")

    monkeypatch.setattr(Records, "write", full)

    assert site.run("--quiet", "/no", "/no/2") == 2
    assert site.err == "polite: records.jsonl: No space left on device\n"


# Output.


def test_lines_tell_how_far_it_is(site):
    site.run("--delay", "6", "/a", "/b", "/c", "/no")

    lines = site.err.splitlines()
    assert lines[0].endswith(f"; at least 8.0 s more, for {site.origin} (2 x 6 s)")
    assert "1 fetched (0." in lines[0]
    assert "1 refused, 2 waiting, 0 in flight" in lines[0]
    assert lines[-1].startswith("polite: 18 s  3 fetched (0.2/s), 1 refused, 0 waiting, 0 in flight")


def test_a_quiet_run_says_nothing(site):
    assert site.run("--quiet", "--delay", "20", "/a") == 0
    assert (site.out, site.err) == ("", "")


def test_what_is_named_twice_takes_no_longer(site):
    site.run("--delay", "20", "/a", "/a", "/b", "/b", "/a")

    assert "(2 x 20 s)" in site.err.splitlines()[0]


@pytest.mark.parametrize("output", [True, False])
def test_records_that_go_to_a_terminal_leave_no_place_for_a_table(output, site, monkeypatch):
    live = []
    monkeypatch.setattr(run_module, "Progress", lambda out, live: made(live))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def made(wanted):
        live.append(wanted)
        return Progress(sys.stderr, live=False)

    site.run("/a", output=output)

    assert live == [output]


def test_the_log_has_every_request_refusal_and_back_off(site, tmp_path):
    site.pages["/busy"] = [{"status": 429, "headers": {"Retry-After": "9"}}, {"text": "now"}]
    site.pages["/gone"] = [_drop]

    site.run("--log", str(tmp_path / "run.jsonl"), "--tries", "2", "/busy", "/no", "/gone")

    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [(each["event"], each.get("status")) for each in lines] == [
        ("run", None),
        ("robots", 200),
        ("refused", None),
        ("slowed", 429),
        ("request", 429),
        ("request", 200),
        ("request", None),
        ("request", None),
    ]
    assert {each["origin"] for each in lines[1:]} == {site.origin}
    assert lines[3]["for_s"] == 9
    requests = [each["t"] for each in lines if each["event"] == "request"]
    assert requests == pytest.approx([at - site.began for at in site.times], abs=0.01)


def test_the_log_of_a_folder_that_is_not_there_is_one_line(site, tmp_path):
    missing = Path(tmp_path / "none" / "run.jsonl")

    assert site.run("--log", str(missing), "/a") == 2
    assert site.err == f"polite: {missing}: No such file or directory\n"
