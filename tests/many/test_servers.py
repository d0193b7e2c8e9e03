"""The servers that other tests use do what those tests rely on."""

from collections.abc import Callable

import pytest
import redis

from tests.many.servers import ValkeyCluster, ValkeyServer, eventually

Start = Callable[..., ValkeyServer]


def test_the_shared_server_is_empty_at_the_start_of_each_test(valkey: ValkeyServer) -> None:
    assert valkey.client.dbsize() == 0
    valkey.client.set("left", "behind")


def test_a_server_with_an_append_only_file_keeps_its_data_over_a_kill(start_valkey: Start) -> None:
    server = start_valkey(append_only=True)
    server.client.set("word", "kept")
    run = server.client.info("server")["run_id"]

    server.restart()

    assert server.client.get("word") == "kept"
    assert server.client.info("server")["run_id"] != run


def test_a_server_without_one_keeps_nothing(start_valkey: Start) -> None:
    server = start_valkey()
    server.client.set("word", "lost")

    server.restart()

    assert server.client.get("word") is None


def test_an_append_only_file_can_be_lost(start_valkey: Start) -> None:
    server = start_valkey(append_only=True)
    server.client.set("word", "lost")

    server.restart(append_only=False)
    server.restart(append_only=True)

    assert server.client.get("word") is None


def test_a_paused_server_does_not_answer(start_valkey: Start) -> None:
    server = start_valkey()
    impatient = redis.Redis(port=server.port, socket_timeout=0.1, retry=None)

    server.pause()
    with pytest.raises(redis.TimeoutError):
        impatient.ping()
    server.resume()

    assert server.client.ping()
    impatient.close()


def test_a_replica_has_the_data_and_can_take_over(start_valkey: Start) -> None:
    master, replica = start_valkey(), start_valkey()
    master.client.set("word", "copied")

    replica.replica_of(master)
    master.kill()
    replica.replica_of(None)

    assert replica.client.get("word") == "copied"
    replica.client.set("word", "its own")


@pytest.mark.slow("processes and servers in real time")
def test_a_cluster_has_all_slots_and_a_slot_can_move(valkey_cluster: ValkeyCluster) -> None:
    first, last = valkey_cluster.nodes
    assert (valkey_cluster.of("{b}"), valkey_cluster.of("{a}")) == (first, last)
    first.client.set("{b}word", "moved")

    valkey_cluster.move("{b}", to=last)

    assert last.client.get("{b}word") == "moved"
    eventually(lambda: valkey_cluster.of("{b}") is last, "both agree")
    client = redis.RedisCluster("127.0.0.1", first.port, decode_responses=True)
    assert client.get("{b}word") == "moved"
    client.close()
