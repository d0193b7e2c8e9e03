"""docs/examples/many_machines.py, run by three processes at a time. In real time: these are processes."""

import subprocess
import sys

import pytest

from polite.stores.redis.opening import partition_prefix
from tests.many.crawling import ROOT, sites
from tests.many.world import World

pytestmark = pytest.mark.slow("processes and servers in real time")

WORLD = World(hosts=3, pages=4, delay_s=0.25, network=76)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "hits"


@pytest.fixture
def port(log):
    with sites(WORLD, log) as port:
        yield port


@pytest.fixture
def start(valkey, port):
    command = [sys.executable, "docs/examples/many_machines.py", "--store", valkey.url, "--crawl", "news"]
    command += ["--delay", "0.2", "--allow-network", "127.0.0.0/8", *WORLD.seeds(port)]
    return lambda: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def done(port: int) -> list[str]:
    return sorted(
        f"done {WORLD.url(host, page, port)}" for host in range(WORLD.hosts) for page in range(WORLD.pages)
    )


def test_a_process_that_is_terminated_ends_cleanly_and_another_goes_on(valkey, start, port):
    first = start()
    said = first.stdout.readline()
    first.terminate()
    # Not by `communicate`: it does not see what `readline` has read ahead.
    with first.stdout:
        said += first.stdout.read()
    first.wait(timeout=60)
    sessions = valkey.client.hlen(f"{partition_prefix('news', 0)}s")
    second = start()
    said += second.communicate(timeout=60)[0]

    assert (first.returncode, second.returncode) == (0, 0)
    assert sessions == 0  # its hosts need not wait for the end of its lease
    assert sorted(said.splitlines()) == done(port)
