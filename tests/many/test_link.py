"""The connection on real servers: what is tried again, what is an error, and what Sentinels, clusters and ACLs do to it."""

import asyncio
import contextlib
import re
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from polite.clock import SystemClock
from polite.errors import StoreFailed
from polite.origin import Origin
from polite.stores.redis import link as link_module
from polite.stores.redis.address import Address
from polite.stores.redis.link import RedisLink, Script
from polite.stores.redis.opening import open_shared, partition_prefix
from polite.stores.redis.step import Unreached
from tests.many.servers import ValkeyCluster, ValkeySentinel, ValkeyServer, eventually, free_port

PREFIX = partition_prefix("news", 0)


class Counting(Script):
    """As step.lua: it writes keys that it computes, and replies with text."""

    def __init__(self) -> None:
        self.text = "return tostring(redis.call('HINCRBY', KEYS[1] .. 'm', 'n', ARGV[1]))"
        self.sha = "0" * 40


@pytest.fixture(autouse=True)
def _counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_STEP", Counting())


@asynccontextmanager
async def linked(url):
    link = RedisLink.to(Address.of(url))
    try:
        yield link
    finally:
        await link.close()


async def eventually_steps(link: RedisLink) -> str:
    until = time.monotonic() + 15.0
    while True:
        try:
            return await link.step(PREFIX, "1")
        except Unreached:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)


async def test_a_script_that_the_server_does_not_know_is_sent_once(valkey: ValkeyServer) -> None:
    script = Script("robots")
    valkey.client.script_flush()
    valkey.client.config_resetstat()

    async with linked(valkey.url) as link:
        for _ in range(3):
            await link.run(script, ["polite:{r:a}", "polite:{r:a}:b"], "load", "", "", "")

    calls = valkey.client.info("commandstats")
    assert (calls["cmdstat_evalsha"]["calls"], calls["cmdstat_eval"]["calls"]) == (3, 1)


async def test_a_server_that_stops_answering_is_unreached_and_the_step_sent_once(start_valkey, monkeypatch):
    monkeypatch.setattr(link_module, "CALL_S", 0.2)
    valkey = start_valkey()
    async with linked(valkey.url) as link:
        await link.step(PREFIX, "1")
        valkey.pause()
        try:
            with pytest.raises(Unreached, match=r"no answer within 0.2 s"):
                await link.step(PREFIX, "1")
        finally:
            valkey.resume()
        # The one whose answer was lost may run too, or late, but once: redis-py sends nothing again.
        assert await link.step(PREFIX, "1") in ("2", "3")
        assert await link.step(PREFIX, "0") in ("2", "3")


async def test_a_cancelled_call_leaves_no_reply_for_the_next_one(start_valkey):
    valkey = start_valkey()
    async with linked(valkey.url) as link:
        await link.step(PREFIX, "1")
        valkey.pause()
        calling = asyncio.ensure_future(link.step(PREFIX, "10"))
        await asyncio.sleep(0.05)
        calling.cancel()
        await asyncio.wait([calling])
        valkey.resume()

        # "11" would be the reply of the cancelled one.
        assert await link.step(PREFIX, "1") in ("2", "12")


async def test_a_master_that_became_a_replica_is_unreached(start_valkey):
    server, other = start_valkey(), start_valkey()
    async with linked(server.url) as link:
        await link.step(PREFIX, "1")
        server.replica_of(other)
        with pytest.raises(Unreached, match="read only replica"):
            await link.step(PREFIX, "1")


async def test_a_full_server_is_named(start_valkey):
    server = start_valkey()
    async with linked(server.url) as link:
        await link.step(PREFIX, "1")
        server.client.config_set("maxmemory", "1")
        with pytest.raises(StoreFailed, match="memory is full .*: raise its maxmemory"):
            await link.step(PREFIX, "1")


# As docs/how-to/many-machines.md has them: for crawling, and for `polite store`.
PAGE = Path(__file__).parents[2] / "docs/how-to/many-machines.md"
SCRIPTS = sorted(Path(link_module.__file__).parent.glob("*.lua"))


def acl_rules(user: str = "polite") -> list[str]:
    head = f"ACL SETUSER {user} on "
    (line,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(head)]
    return ["on", *line.removeprefix(head).replace("<password>", "hunter2").split()]


def commands_of(scripts):
    text = "".join(script.read_text(encoding="utf-8") for script in scripts)
    return {f"+{name.lower()}" for name in re.findall(r"call\(\s*'([A-Z]+)'", text)}


def test_the_documented_acl_has_what_scripts_call_and_no_more() -> None:
    own = {"+eval", "+evalsha", "+info"}
    crawling = [script for script in SCRIPTS if script.stem not in ("inspect", "origin")]

    assert {rule for rule in acl_rules() if rule.startswith("+")} == commands_of(crawling) | own
    # Of robots.lua only what reads.
    looking = [script for script in SCRIPTS if script.stem in ("inspect", "origin", "robots")]
    reading = commands_of(looking) - {"+set"}
    operating = {rule for rule in acl_rules("polite-operator") if rule.startswith("+")}
    assert operating == reading | own | {"+scan", "+unlink"}


@pytest.fixture
def acl(valkey):
    """Make the user with the documented rules and others; return the URL that names it."""

    def make(*more: str, user: str = "polite") -> str:
        valkey.client.execute_command("ACL", "SETUSER", user, "reset", *acl_rules(user), *more)
        return f"redis://{user}:hunter2@127.0.0.1:{valkey.port}"

    yield make
    valkey.client.acl_deluser("polite", "polite-operator")


async def test_the_documented_acl_is_enough(acl, valkey, caplog):
    shared = await open_shared(acl(), SystemClock())
    try:
        await shared.join("news")
        assert await shared.link.step(PREFIX, "1") == "1"
        valkey.client.script_flush()
        assert await shared.link.step(PREFIX, "1") == "2"
        assert await shared.robots.load(Origin.of("https://site.example")) is None
    finally:
        await shared.close()
    assert "maxmemory-policy" not in caplog.text


@pytest.mark.parametrize(
    ("taken_away", "named"),
    [
        ("-evalsha", r"\+evalsha permits it"),
        # Before Redis 7.2, the server does not say which command.
        ("-hincrby", r"\+hincrby permits it|permit the user all commands of the rules"),
        ("resetkeys", "~polite:\\* permits it"),
    ],
)
async def test_what_an_acl_lacks_is_named(acl, taken_away, named):
    async with linked(acl(taken_away)) as link:
        with pytest.raises(StoreFailed, match=named):
            await link.step(PREFIX, "1")


async def test_on_a_cluster_two_more_rules_are_enough(valkey_cluster: ValkeyCluster) -> None:
    (line,) = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("ACL SETUSER polite +")
    ]
    for node in valkey_cluster.nodes:
        node.client.execute_command("ACL", "SETUSER", "polite", "reset", *acl_rules(), *line.split()[3:])
    shared = await open_shared(valkey_cluster.url.replace("://", "://polite:hunter2@"), SystemClock())
    try:
        await shared.join("news")
        assert await shared.link.step(PREFIX, "1") == "1"
    finally:
        await shared.close()


async def test_a_step_goes_to_the_node_of_its_slot(valkey_cluster: ValkeyCluster) -> None:
    async with linked(valkey_cluster.url) as link:
        for partition in range(8):
            prefix = partition_prefix("news", partition)
            assert await link.step(prefix, "1") == "1"
            assert valkey_cluster.of(prefix).client.hget(f"{prefix}m", "n") == "1"


async def test_a_slot_may_move_while_steps_run_and_none_runs_on_half_of_it(valkey_cluster: ValkeyCluster):
    source = valkey_cluster.of(PREFIX)
    (target,) = (node for node in valkey_cluster.nodes if node is not source)
    slot = valkey_cluster.slot(PREFIX)
    source_id, target_id = (node.client.execute_command("CLUSTER", "MYID") for node in (source, target))
    async with linked(valkey_cluster.url) as link:
        assert await link.step(PREFIX, "1") == "1"
        target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        # Its key is on the source still.
        with pytest.raises(Unreached):
            await link.step(PREFIX, "1")
        source.client.execute_command("MIGRATE", "127.0.0.1", target.port, f"{PREFIX}m", 0, 5000)
        # Its key is on the target, where others may be missing.
        with pytest.raises(Unreached):
            await link.step(PREFIX, "1")
        for node in (target, source):
            node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_id)

        assert await eventually_steps(link) == "2"


async def test_after_a_failover_the_sentinels_name_the_new_master(start_valkey, tmp_path):
    master, replica = start_valkey(), start_valkey()
    replica.replica_of(master)
    sentinel = ValkeySentinel(tmp_path / "sentinel", master)
    with contextlib.closing(sentinel.start()):
        async with linked(f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}/news") as link:
            assert link.name.endswith("/news/0")
            await link.step(PREFIX, "1")
            assert master.client.hget(f"{PREFIX}m", "n") == "1"
            eventually(lambda: replica.client.hget(f"{PREFIX}m", "n") == "1", "the replica has it")

            master.kill()

            assert await eventually_steps(link) == "2"
            assert sentinel.master == replica.port
            assert replica.client.hget(f"{PREFIX}m", "n") == "2"
