"""`polite fetch --store`: a run that is interrupted leaves its pages to others. In real time: these are processes and a server."""

import json
import signal
import subprocess
import sys
import time

import pytest

from polite.judge.verdict import ROBOTS
from tests.many.crawling import ROOT, sites
from tests.many.world import World, read_request

WORLD = World(hosts=2, pages=12, network=75)
LIMIT_S = 60


@pytest.mark.slow("processes and servers in real time")
def test_an_interrupted_run_leaves_its_pages_to_others_and_goes_on_with_the_same_command(valkey, tmp_path):
    log = tmp_path / "hits"
    with sites(WORLD, log) as port:
        urls = [WORLD.url(host, page, port) for page in range(WORLD.pages) for host in range(WORLD.hosts)]
        options = "--agent TestBot/1.0 --allow-private --quiet --delay 0.2 --crawl news".split()
        options += ["--output", str(tmp_path), "--store", valkey.url]
        command = [sys.executable, "-m", "polite", "fetch", *options, *urls]
        first = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + LIMIT_S
        while log.read_text().count("/p/") < 6 and time.monotonic() < until:
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=LIMIT_S)
        again = subprocess.run(command, cwd=ROOT, check=False, timeout=LIMIT_S)

    asked = [(each.host, each.path) for each in map(read_request, log.read_text().splitlines())]
    pages = [f"/p/{page}" for page in range(WORLD.pages)]
    assert (first.returncode, again.returncode) == (130, 0)
    assert "waiting URLs are kept in crawl news" in said
    assert sorted(asked) == sorted((host, path) for host in range(WORLD.hosts) for path in (ROBOTS, *pages))
    records = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    assert {each["url"]: each["outcome"] for each in records} == dict.fromkeys(urls, "fetched")
