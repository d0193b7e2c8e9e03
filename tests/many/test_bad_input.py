"""Bad input of a shared crawl, by the library and by `polite fetch`: each error names what to change, and no credentials."""

import asyncio
import traceback
from contextlib import AsyncExitStack

import pytest

import polite
from polite import schedulers
from polite.cli.main import main
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.many.servers import ValkeyServer, free_port
from tests.support import fetch_rest

SECRET, USER = "hunter2", "alice"
LOGIN = f"{USER}:{SECRET}@"
LIMIT_S = 20


def gate(store, **options):
    site = ScriptedTransport({f"https://{host}.test/robots.txt": Reply(200, b"") for host in "ab"})
    return polite.open_gate("TestBot/1.0", store=store, transports={"https": site}, **options)


async def refusal(kind, opening):
    with pytest.raises(kind) as caught:
        async with asyncio.timeout(LIMIT_S):
            await opening()
    message = str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert USER not in message
    return message


async def both_refusals(kind, store, **options):
    """Return the message of a gate; that of a frontier on a gate without a store is the same."""

    async def open_gate() -> None:
        async with gate(store, **options):
            pass

    async def open_frontier() -> None:
        async with gate(None) as opened, polite.open_frontier(opened, store=store, **options):
            pass

    message = await refusal(kind, open_gate)
    again = await refusal(kind, open_frontier)
    assert again.partition(" connecting to ")[0] == message.partition(" connecting to ")[0]
    return message


@pytest.mark.parametrize("slip", ["redis:/{}h/0", "redis:{}h/0", "mongodb://{}h/0", "redis://{}h:x/0"])
async def test_a_slip_in_the_address_is_no_file_and_shows_no_password(slip: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = await both_refusals(polite.InvalidOption, slip.format(LOGIN))
    assert message.startswith("store: ")
    assert "an example is redis://host:6379/0" in message
    assert list(tmp_path.iterdir()) == []


async def test_sentinels_that_do_not_answer_are_told_without_the_settings_of_their_clients() -> None:
    message = await both_refusals(
        polite.StoreFailed, f"redis+sentinel://{LOGIN}127.0.0.1:{free_port()},127.0.0.1:{free_port()}/news"
    )
    assert message.endswith(
        "the server is not reached: no Sentinel names a master of 'news' (ConnectionError)"
    )


async def test_a_single_server_is_neither_a_cluster_nor_a_sentinel(valkey: ValkeyServer) -> None:
    at = f"127.0.0.1:{valkey.port}"
    for store, wrong in (
        (f"redis+cluster://{at}", "Cluster mode is not enabled"),
        (f"redis+sentinel://{at}/news", "this server is no Sentinel"),
    ):
        message = await both_refusals(polite.StoreFailed, store)

        assert wrong in message
        assert f"a single server has an address such as redis://{at}" in message


@pytest.mark.parametrize("option", [{"crawl": "news"}, {"lease": 6.0}])
@pytest.mark.parametrize("store", [None, "crawl.sqlite"])
async def test_options_of_a_shared_store_need_one(option, store):
    message = await both_refusals(polite.InvalidOption, store, **option)
    assert message.endswith('needs a shared store, such as store="redis://example.com/0"')


@pytest.mark.parametrize(
    ("of_gate", "of_frontier", "message"),
    [
        ({}, {"scheduler": schedulers.Priority()}, "order 'fifo', and this process has 'priority'"),
        (
            {"pacing": polite.PacingPolicy(home=lambda _: "x")},
            {},
            "home 'host', and this process has 'custom'",
        ),
        ({"lease": 6.0}, {}, "lease '15', and this process has '6'"),
    ],
)
async def test_a_crawl_with_other_policies_names_both(valkey, of_gate, of_frontier, message):
    async def open_both(of_gate, of_frontier):
        async with (
            gate(valkey.url, crawl="news", **of_gate) as opened,
            polite.open_frontier(opened, crawl="news", **of_frontier),
        ):
            pass

    await open_both({}, {})
    refused = await refusal(polite.InvalidOption, lambda: open_both(of_gate, of_frontier))

    assert refused.startswith(f"crawl 'news' at {valkey.url} was begun with ")
    assert refused.endswith(f"{message}: use the same in all processes, or another crawl")


@pytest.mark.parametrize(
    ("key", "content", "message"),
    [
        ("polite:{news}:crawl", {"schema": "2"}, "version of polite with schema 2, and this version has 1"),
        ("polite:{news}:crawl", "x", "a key that begins with polite:{news}:crawl has another type"),
        ("polite:{news:0}:h", "x", "a key that begins with polite:{news:0}: has another type"),
        ("polite:{news:0}:t:https://a.test", "x", "a key that begins with polite:{news:0}: has another type"),
    ],
)
async def test_a_key_of_a_newer_version_or_another_program_is_named(valkey, key, content, message):
    if isinstance(content, str):
        valkey.client.set(key, content)
    else:
        valkey.client.hset(key, mapping=content)

    async def crawl() -> None:
        async with (
            gate(valkey.url, crawl="news") as opened,
            polite.open_frontier(opened, crawl="news") as frontier,
        ):
            await frontier.put("https://a.test/")
            await fetch_rest(frontier)

    refused = await refusal(polite.StoreFailed, crawl)

    assert refused.startswith(f"{valkey.url}: ")
    assert message in refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crawl": "news"}, "this gate has a frontier on this crawl already"),
        ({"crawl": "olds"}, "the gate is in crawl 'news' already; give both the same name"),
        ({"crawl": "news", "lease": 6.0}, "lease=6.0: the gate is in crawl 'news' with a lease of 15 s"),
        ({"store": f"redis://{LOGIN}127.0.0.1:1/0", "crawl": "news"}, "the gate is on 'redis://127.0.0.1:"),
        ({"store": "URL/1", "crawl": "news"}, "a gate and its frontiers share one store"),
    ],
)
async def test_a_frontier_that_does_not_fit_its_gate_is_refused(valkey, options, message):
    if "store" in options:
        options = options | {"store": options["store"].replace("URL/1", valkey.url.replace("/0", "/1"))}

    async def open_them() -> None:
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(gate(valkey.url, crawl="news"))
            await stack.enter_async_context(polite.open_frontier(opened, crawl="news"))
            await stack.enter_async_context(polite.open_frontier(opened, **options))

    assert message in await refusal(polite.InvalidOption, open_them)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "URL"], "--store URL and --crawl NAME are needed together"),
        (["--store", "URL", "--crawl", "a b"], "--crawl must be a name of 1 to 100 letters"),
        (
            ["--store", "URL", "--crawl", "news", "--resume", "queue.sqlite"],
            "--store and --resume exclude each other",
        ),
        (["--store", f"redis:/{LOGIN}h", "--crawl", "news"], "--store: redis://... must begin with"),
        (
            ["--store", f"redis://{LOGIN}127.0.0.1:1", "--crawl", "news"],
            "redis://127.0.0.1:1/0: the server is not",
        ),
        (["--store", "LOGIN", "--crawl", "news"], "the server refuses the user or the password"),
        (["--store", "URL", "--crawl", "other"], "order 'depth', and this process has 'fifo'"),
    ],
)
def test_fetch_names_what_is_wrong_in_one_line(arguments, message, valkey, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    terms = {"schema": "1", "partitions": "1", "home": "host", "lease": "15", "order": "depth"}
    valkey.client.hset("polite:{other}:crawl", mapping=terms)
    urls = {"URL": valkey.url}
    urls["LOGIN"] = valkey.url.replace("//", f"//{LOGIN}")

    arguments = [urls.get(each, each) for each in arguments]
    status = main(["fetch", "--agent", "TestBot/1.0", "--quiet", *arguments, "https://a.test/"])

    out, errors = capsys.readouterr()
    (line,) = [each for each in errors.splitlines() if "appendonly is no" not in each]
    assert (status, out) == (2, "")
    assert line.startswith("polite: ")
    assert message in line
    assert SECRET not in line
    assert USER not in line
