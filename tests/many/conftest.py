"""Fixtures that start real servers. `valkey` is shared by a run's tests and emptied for each; the others are a test's own."""

from contextlib import closing

import pytest

from tests.many.servers import ValkeyCluster, ValkeyServer
from tests.many.stepping import Crawl, Process


@pytest.fixture(scope="session")
def _shared_valkey(tmp_path_factory):
    with closing(ValkeyServer(tmp_path_factory.mktemp("valkey"))) as server:
        yield server.start()


@pytest.fixture
def valkey(_shared_valkey: ValkeyServer) -> ValkeyServer:
    """An empty server. Do not stop it, nor change its configuration: take `start_valkey` for that."""
    _shared_valkey.client.flushall()
    return _shared_valkey


@pytest.fixture
def start_valkey(tmp_path):
    """Start servers of the test's own; it takes the arguments of ValkeyServer without the folder."""
    servers: list[ValkeyServer] = []

    def start(*options: str, append_only: bool = False) -> ValkeyServer:
        server = ValkeyServer(tmp_path / f"valkey-{len(servers)}", *options, append_only=append_only)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def valkey_cluster(tmp_path):
    with closing(ValkeyCluster(tmp_path / "cluster")) as cluster:
        yield cluster.start()


@pytest.fixture
def crawl(valkey: ValkeyServer) -> Crawl:
    """An empty partition of a crawl, to run step.lua on."""
    return Crawl(valkey)


@pytest.fixture
def one(crawl: Crawl) -> Process:
    return crawl.process("one")


@pytest.fixture
def other(crawl: Crawl) -> Process:
    return crawl.process("other")
