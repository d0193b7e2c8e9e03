"""A shared store is opened, or refused with what to change: each refusal on a real server, or on what is none."""

import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest
import redis.asyncio
import trustme

from polite.clock import SystemClock
from polite.errors import InvalidOption, PoliteError, StoreFailed
from polite.stores.redis.opening import open_shared
from tests.many.proxy import TcpProxy
from tests.support import run_python

SECRET = "hunter2"


@asynccontextmanager
async def opened(store):
    shared = await open_shared(store, SystemClock())
    try:
        yield shared
    finally:
        await shared.close()


async def refusal(store: object, kind: type[PoliteError] = StoreFailed) -> str:
    with pytest.raises(kind) as caught:
        await open_shared(store, SystemClock())
    assert SECRET not in str(caught.value)
    return str(caught.value)


async def test_a_client_object_is_taken_and_left_open(valkey):
    client = redis.asyncio.Redis(port=valkey.port, password=None, decode_responses=True)

    async with opened(client) as shared:
        assert shared.link.name == f"redis://localhost:{valkey.port}/0"
        await shared.join("news")
        # A batch that was sent twice would be refused, and its reply would be lost.
        assert client.get_retry().get_retries() == 0

    assert await client.ping()
    await client.aclose()


async def answering(reply: bytes | None) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        if reply is not None:
            writer.write(reply)
        await reader.read()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "does not speak the protocol of Redis"),
        (b"-ERR unknown command\r\n", "the server refuses a command: unknown command"),
        (b"+OK\r\n" * 9, "INFO names no version: this is neither Redis nor Valkey"),
        (
            b"$26\r\nredis_version:6.2.7\r\nx:1\r\n\r\n" * 9,
            "this is Redis 6.2.7, and a shared crawl needs 7.0 or later",
        ),
        (b"$42\r\nredis_version:7.4.0\r\ndragonfly_version:1\r\n\r\n" * 9, "this is Dragonfly"),
    ],
)
async def test_what_is_no_server_of_the_right_kind_is_named(reply: bytes, message: str) -> None:
    server = await answering(reply)
    async with server:
        assert message in await refusal(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_a_password_that_is_missing_or_wrong_is_no_secret_told(start_valkey):
    server = start_valkey()
    server.client.config_set("requirepass", SECRET)
    server.client.connection_pool.connection_kwargs["password"] = SECRET
    host = f"127.0.0.1:{server.port}"

    missing = await refusal(f"redis://{host}")
    wrong = await refusal(f"redis://:x{SECRET}@{host}")
    async with opened(f"redis://:{SECRET}@{host}") as shared:
        assert SECRET not in repr(shared) + str(shared)

    assert missing.startswith(
        f"redis://{host}/0: the server refuses the user or the password (Authentication required.)"
    )
    assert "POLITE_STORE_PASSWORD" in wrong


async def test_a_server_that_evicts_is_refused_with_the_command(start_valkey):
    server = start_valkey("--maxmemory-policy", "allkeys-lru")
    message = await refusal(server.url)
    server.client.config_set("maxmemory-policy", "noeviction")
    async with opened(server.url):
        pass
    assert "its maxmemory-policy is allkeys-lru" in message
    assert "run CONFIG SET maxmemory-policy noeviction" in message


async def test_a_server_without_append_only_file_is_warned_of(start_valkey, caplog):
    async with opened(start_valkey().url):
        warned = caplog.text
        caplog.clear()
    async with opened(start_valkey(append_only=True).url):
        assert not caplog.records
    assert "appendonly is no" in warned
    assert "CONFIG SET appendonly yes" in warned


async def test_a_replica_is_refused_with_the_masters_name(start_valkey):
    master, replica = start_valkey(), start_valkey()
    replica.replica_of(master)
    message = await refusal(replica.url)
    assert "read-only replica" in message
    assert f"(127.0.0.1:{master.port})" in message


@pytest.fixture
def authority(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    cert = authority.issue_cert("localhost", "127.0.0.1")
    cert.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    cert.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    return tmp_path


async def test_tls_is_spoken_and_the_certificate_is_checked(valkey, authority):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    with TcpProxy(valkey.port, context) as proxy:
        unknown = await refusal(f"rediss://127.0.0.1:{proxy.port}")
        known = f"rediss://127.0.0.1:{proxy.port}?ssl_ca_certs={authority / 'ca.pem'}"
        async with opened(known) as shared:
            await shared.join("news")
        without = await refusal(f"redis://127.0.0.1:{proxy.port}")

    assert "CERTIFICATE_VERIFY_FAILED" in unknown
    assert "?ssl_ca_certs=ca.pem" in unknown
    assert "rediss://" in without


async def test_the_first_process_begins_a_crawl_and_others_join_it(valkey):
    async with opened(valkey.url) as one, opened(valkey.url) as other:
        partitions = [
            await one.join("news"),
            await other.join("news", order="priority"),
            await one.join("news"),
        ]

    assert partitions == [1, 1, 1]
    assert valkey.client.hgetall("polite:{news}:crawl") == {
        "schema": "1",
        "partitions": "1",
        "home": "host",
        "lease": "15",
        "order": "priority",
    }


async def test_a_crawl_keeps_the_number_of_partitions_that_it_began_with(valkey):
    async with opened(valkey.url) as shared:
        await shared.join("news")
        valkey.client.hset("polite:{news}:crawl", "partitions", "8")
        assert await shared.join("news") == 8

        valkey.client.hset("polite:{news}:crawl", "partitions", "many")
        with pytest.raises(StoreFailed, match="damaged: 'many'"):
            await shared.join("news")


@pytest.mark.parametrize(
    ("name", "lease", "message"),
    [
        *(
            (name, 15, "crawl must be a name of 1 to 100 letters")
            for name in ("", "a:b", "é", "x" * 101, None)
        ),
        *(("news", lease, "lease must be a number from 1 to 300") for lease in (0.5, 301, "15")),
    ],
)
async def test_a_crawl_needs_a_name_that_keys_can_hold_and_a_lease_in_limits(valkey, name, lease, message):
    async with opened(valkey.url) as shared:
        with pytest.raises(InvalidOption, match=message):
            await shared.join(name, lease_s=lease)


@pytest.mark.slow("starts processes")
def test_without_the_package_the_extra_is_named_and_importing_polite_loads_none() -> None:
    code = """
import sys
import polite
assert not any(name == "redis" or name.startswith("redis.") for name in sys.modules)
sys.modules["redis"] = None
for _ in range(2):
    try:
        import polite.stores.redis.opening
    except polite.InvalidOption as error:
        assert "pip install 'polite-crawl[redis]'" in str(error), error
    else:
        raise AssertionError
"""
    run_python(code, check=True)
