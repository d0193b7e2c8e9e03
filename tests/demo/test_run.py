"""The demo itself, and that it can fail."""

import asyncio
import re

import pytest

from docs.examples.demo import run
from docs.examples.demo.__main__ import main
from docs.examples.demo.sites import HOSTS


@pytest.mark.slow("a crawl in real time")
def test_the_demo_crawls_sixteen_hosts_and_was_polite(capsys, tmp_path):
    picture = tmp_path / "demo.svg"

    assert main(["--timeline", str(picture)]) == 0

    out, err = capsys.readouterr()
    _, _, table = out.partition("\n\n")
    rows = {line.split()[0]: line for line in table.splitlines()[1:17]}
    assert err == ""
    assert list(rows) == [host.name for host in HOSTS]
    assert "waiting" in out
    assert "3x found (200)" in rows["busy.test"]
    assert "1x unavailable (302)" in rows["six.test"]
    assert "line 2, line 3, line 4, line 6" in rows["shop.test"]
    assert "101 pages from 16 hosts in " in out
    assert "by the servers' log: every gap kept" in out
    assert f"requests over time: {picture}\n" in out
    assert re.search(r"<title>busy.test: \d back-off, 6 page, 3 robots.txt", picture.read_text())


def _instead_of_the_crawl(monkeypatch, crawl):
    monkeypatch.setattr(run, "crawl", crawl)


def test_a_crawl_that_hangs_is_cancelled_and_fails(monkeypatch, capsys):
    async def hang(*_):
        await asyncio.Event().wait()

    _instead_of_the_crawl(monkeypatch, hang)
    monkeypatch.setattr(run, "LIMIT_S", 0.05)

    assert main([]) == 1
    out, err = capsys.readouterr()
    assert "failed: the crawl did not finish within 0.05 s and was cancelled\n" in err
    assert "impolite: groups.test: not fetched" in err
    assert "by the servers' log: 16 offences" in out


def test_a_crawl_that_fails_says_what_with(monkeypatch, capsys):
    async def fail(*_):
        async with asyncio.TaskGroup():
            raise ValueError("a defect")

    _instead_of_the_crawl(monkeypatch, fail)

    assert main([]) == 1
    assert "failed: the crawl failed with ValueError('a defect')\n" in capsys.readouterr().err


def test_a_crawl_without_the_gate_is_found_out(monkeypatch, capsys):
    async def rude(_gate, session, seeds, _found):
        for path in ("", "members"):
            async with session.get(seeds[0] + path) as response:
                await response.read()

    _instead_of_the_crawl(monkeypatch, rude)

    assert main([]) == 1
    err = capsys.readouterr().err
    assert "impolite: groups.test: /members came 0.0" in err
    assert "impolite: groups.test: /members was fetched, which is disallowed" in err
    assert "impolite: groups.test: / was fetched before robots.txt was known" in err
