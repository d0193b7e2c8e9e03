"""Pages at addresses that are not public."""

import json

import pytest

from polite.cli.fetch.page import AddressBlocked, Pages
from polite.cli.main import parse
from polite.cli.option_names import command_line_text
from polite.compose.gate import open_gate
from polite.pacing.policy import PacingPolicy
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from polite.transports.http import HttpTransport


def test_a_private_address_is_blocked_by_default(site):
    assert site.run("/a", private=False) == 3

    assert site.records["/a"]["code"] == "ROBOTS_ADDRESS_REFUSED"
    assert site.asked == []
    assert site.took_s < 1


def test_a_page_at_a_private_address_is_not_retried(site, monkeypatch):
    async def no_rules(self, ask):
        return Reply(404)

    monkeypatch.setattr(HttpTransport, "get", no_rules)

    assert site.run("/a", private=False) == 3

    record = site.records["/a"]
    assert (record["outcome"], record["tries"]) == ("given up", 1)
    assert "127.0.0.1 is not public, so it is blocked; use --allow-private to permit it" in record["detail"]


def test_no_option_permits_a_metadata_service(site, caplog):
    assert site.run("http://169.254.169.254/") == 3

    assert site.records["http://169.254.169.254/"]["code"] == "ROBOTS_ADDRESS_REFUSED"
    assert "169.254.169.254 is blocked and never fetched: no option permits it" in command_line_text(
        caplog.text
    )


async def test_a_name_that_resolves_to_a_private_address_after_its_robots_txt_is_blocked():
    async with (
        Pages(parse(["fetch", "http://127.0.0.1:9/"])) as pages,
        open_gate(
            "Bot/1.0", transports={"http": ScriptedTransport({})}, pacing=PacingPolicy(min_delay=0)
        ) as gate,
        gate.permit("http://127.0.0.1:9/") as permit,
    ):
        with pytest.raises(AddressBlocked, match="127.0.0.1 is not public, so it is blocked"):
            await pages.get(permit, {})


@pytest.mark.parametrize("rules", [True, False])
def test_the_log_says_that_no_server_was_asked(rules, site, tmp_path, monkeypatch):
    async def no_rules(self, ask):
        return Reply(404)

    if rules:
        monkeypatch.setattr(HttpTransport, "get", no_rules)
    log = tmp_path / "run.jsonl"

    site.run("--log", str(log), "/a", private=False)

    asked = {each["event"]: each.get("asked") for each in map(json.loads, log.read_text().splitlines())}
    assert asked == {"run": None} | ({"robots": True, "request": False} if rules else {"robots": False})
