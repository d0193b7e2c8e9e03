"""examples/many_machines.py, run by three processes at a time. In real time: these are processes."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from tests.many.judge import Hit
from tests.many.running import ROOT
from tests.many.servers import ValkeyServer
from tests.many.world import ROBOTS, World

WORLD = World(hosts=3, pages=4, delay_s=0.25, network=76)


def test_three_processes_fetch_each_page_once_and_keep_the_delays(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    log = tmp_path / "hits"
    sites_command = [sys.executable, "-m", "tests.many.sites", WORLD.written(), str(log)]
    with subprocess.Popen(
        sites_command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sites:
        assert sites.stdin is not None
        assert sites.stdout is not None
        port = int(sites.stdout.readline())
        command = [sys.executable, "examples/many_machines.py", "--store", valkey.url, "--crawl", "news"]
        command += ["--delay", "0.2", "--allow-network", "127.0.0.0/8", *WORLD.seeds(port)]
        processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        said = [each.communicate(timeout=60)[0] for each in processes]
        sites.stdin.close()

    urls = [WORLD.url(host, page, port) for host in range(3) for page in range(4)]
    hits = [Hit.of(line) for line in log.read_text().splitlines()]
    assert [each.returncode for each in processes] == [0, 0, 0]
    assert sorted("".join(said).splitlines()) == sorted(f"done {url}" for url in urls)
    for host in range(3):
        seen = [hit for hit in hits if hit.host == host]
        assert sorted(hit.path for hit in seen) == ["/p/0", "/p/1", "/p/2", "/p/3", ROBOTS]
        assert all(later.at - earlier.at > 0.199 for earlier, later in pairwise(seen))
