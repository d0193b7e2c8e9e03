"""`polite hold`, `forbid`, `release`, `drop`, `holds`: orders in a store, which a gate obeys."""

import asyncio
import json
import time
from contextlib import nullcontext

import pytest

from polite.cli.main import main
from tests.support import scripted_gate

WHY = ["--because", "the owner called"]


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "robots.sqlite")
    asyncio.run(in_force(path))
    return path


async def in_force(store):
    async with scripted_gate(store=store) as gate:
        return {(order.kind, order.pattern): order for order in gate.orders}


def test_orders_are_given_listed_and_released(store, capsys):
    began = time.time()
    assert main(["hold", "*.A.test", *WHY, "--for", "30m", "--store", store]) == 0
    assert main(["forbid", "https://b.test/x", *WHY, "--store", store]) == 0
    assert main(["drop", "https://c.test", *WHY, "--store", store, "--json"]) == 0
    *_, dropped = capsys.readouterr().out.splitlines()
    assert json.loads(dropped)["until"] == pytest.approx(began + 3_600, abs=60)
    found = asyncio.run(in_force(store))
    assert set(found) == {("hold", "*.a.test"), ("forbid", "https://b.test/x"), ("drop", "https://c.test")}
    assert found["hold", "*.a.test"].until == pytest.approx(began + 1_800, abs=60)
    assert "@" in found["hold", "*.a.test"].by

    assert main(["holds", "--store", store]) == 0
    hold, forbid, _ = capsys.readouterr().out.splitlines()
    assert hold.startswith("hold     *.a.test  until ")
    assert forbid.startswith("forbid   https://b.test/x  until released  ")
    assert forbid.endswith(": the owner called")
    assert main(["release", "*.a.test", *WHY, "--store", store]) == 0
    assert capsys.readouterr().out.startswith("released *.a.test")
    assert main(["release", "*.a.test", *WHY, "--store", store]) == 2
    assert "no order stands for *.a.test; patterns with orders: https://b.test/x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["hold", "a.test", *WHY, "--store", "STORE"], "pattern='a.test' must be an origin"),
        (
            ["hold", "*.a.test", *WHY],
            "--store FILE|URL (of the crawl) or --gate URL (of polite serve) is needed",
        ),
        (["hold", "*.a.test", *WHY, "--store", "nowhere"], "there is no such file"),
        (["hold", "*.a.test", "--store", "STORE"], "--because"),
        (["hold", "*.a.test", *WHY, "--for", "soon", "--store", "STORE"], "--for must be seconds"),
        (["hold", "*.a.test", *WHY, "--until", "2020-01-01T00:00Z", "--store", "STORE"], "later than now"),
        (
            ["hold", "*.a.test", *WHY, "--until", "tomorrow", "--store", "STORE"],
            "--until must be a date and a time",
        ),
        (["holds", "--gate", "http://127.0.0.1:9"], "--gate http://127.0.0.1:9: it is not reached"),
    ],
)
def test_mistakes_are_named(store, command, message, capsys):
    with (
        pytest.raises(SystemExit) if "--" in message[:2] and "gate" not in message.lower() else nullcontext()
    ):
        assert main([store if each == "STORE" else each for each in command]) == 2
    assert message in capsys.readouterr().err


def test_no_orders_are_said_to_stand(store, capsys):
    assert main(["holds", "--store", store]) == 0
    assert "no orders stand" in capsys.readouterr().err
