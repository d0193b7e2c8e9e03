"""Ready-made scopes as a gate obeys them: domain, address, whole crawl, and all hosts of one customer; in virtual time."""

import asyncio
from collections import defaultdict
from random import Random

import pytest

import polite
from polite import PacingPolicy, ScopeLimit, Scopes
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import Names, gaps, visit
from tests.support import now, scripted_gate


def opened(scopes, names=None, *, min_delay=1.0, **options):
    return scripted_gate(pacing=PacingPolicy(scopes=scopes, min_delay=min_delay), addresses=names, **options)


async def visits(gate: polite.Gate, *hosts: str) -> list[float]:
    """All at one time, where robots.txt is known: the gaps between their turns."""
    for host in hosts:
        await gate.check(f"https://{host}/")
    await asyncio.sleep(100)
    return gaps(sorted(await asyncio.gather(*(visit(gate, f"https://{host}/") for host in hosts))))


async def test_the_hosts_of_one_domain_take_turns_and_others_do_not_wait() -> None:
    async with opened(Scopes(domain=ScopeLimit(delay=3.0))) as gate:
        assert await visits(gate, "a.site.co.uk", "b.site.co.uk", "site.co.uk") == [3.0, 3.0]
        assert await visits(gate, "one.co.uk", "two.co.uk") == [0.0]


@pytest.mark.parametrize("error", [ValueError(), asyncio.CancelledError()])
async def test_a_limit_that_raises_hinders_no_request_that_waits(error: BaseException) -> None:
    raised: list[BaseException] = []

    class Limited:
        def __call__(self, target: polite.Target) -> tuple[polite.Origin]:
            return (target.origin,)

        def limit(self, scope: object) -> None:
            if raised:
                raise raised.pop()

    scopes = Limited()
    async with scripted_gate(pacing=PacingPolicy(scopes=scopes)) as gate, asyncio.timeout(100):
        await visit(gate, "https://a.test/1")
        waiting = asyncio.gather(*(visit(gate, "https://a.test/2") for _ in range(2)))
        await asyncio.sleep(0.5)
        gate.pacing = PacingPolicy(scopes=scopes, min_delay=2.0)
        raised.append(error)
        await waiting


async def test_hosts_at_one_address_take_turns() -> None:
    names = Names({"a.test": "192.0.2.1", "b.test": "192.0.2.1", "c.test": "192.0.2.2"})
    async with opened(Scopes(address=ScopeLimit(delay=2.0)), names) as gate:
        assert await visits(gate, "a.test", "b.test", "192.0.2.1") == [2.0, 2.0]
        assert await visits(gate, "a.test", "c.test") == [0.0]
    assert names.closed == 1


async def test_a_host_that_moves_while_its_page_waits_takes_a_turn_where_it_is_now() -> None:
    hosts = {"a.test": "192.0.2.1", "b.test": "192.0.2.2"}
    slow = Reply(200, b"User-agent: *\nCrawl-delay: 300\n")
    transport = ScriptedTransport({"https://a.test/robots.txt": slow})
    scopes = Scopes(address=ScopeLimit(delay=20.0))
    async with opened(scopes, Names(hosts), transports={"https": transport}) as gate:
        await visit(gate, "https://a.test/")
        waiting = asyncio.create_task(visit(gate, "https://a.test/"))
        await asyncio.sleep(100)
        hosts["a.test"] = "192.0.2.2"

        at_b = [await visit(gate, "https://b.test/") for _ in range(12)]
        moved = await waiting

    assert moved >= 600.0
    assert min(gaps(sorted([*at_b, moved]))) >= 20.0


async def test_an_address_behind_a_proxy_is_nobodys_business() -> None:
    pacing = PacingPolicy(scopes=Scopes(address=ScopeLimit()))
    fetching = polite.FetchPolicy(proxy="http://127.0.0.1:3128")
    with pytest.raises(polite.InvalidOption, match=r"FetchPolicy\.proxy"):
        async with polite.open_gate("TestBot/1.0", pacing=pacing, fetching=fetching):
            pass


class SlowServers:
    """Servers that note when a request arrives. Some let a client wait for its connection, or for the response."""

    def __init__(self, chance: Random, *, asks: bool = True) -> None:
        self._chance, self._asks = chance, asks
        self.arrived: list[tuple[float, str]] = []

    async def get(self, ask: Ask) -> Reply | Failed:
        await self._connect(ask.target.url)
        if self._asks:
            await ask.ready()
        self.arrived.append((now(), ask.target.url))
        await asyncio.sleep(self._chance.choice([0.0, 0.3, 3.0, 15.0]))
        return Reply(404)

    async def visit(self, gate: polite.Gate, url: str) -> None:
        async with gate.permit(url) as permit:
            await self._connect(url)
            await permit.ready()
            self.arrived.append((now(), url))
            await asyncio.sleep(self._chance.choice([0.0, 0.3, 3.0]))
            permit.report(status=200)

    async def close(self) -> None:
        pass

    async def _connect(self, url: str) -> None:
        if self._asks:
            await asyncio.sleep(self._chance.choice([0.0, 0.01, 2.5, 9.0]))


def customer(target: polite.Target) -> str:
    return f"customer{ord(target.origin.host[0]) % 2}"


@pytest.mark.parametrize("seed", range(40))
async def test_two_requests_of_a_scope_are_never_closer_than_its_delay_at_the_server(seed: int) -> None:
    chance = Random(seed)
    # A transport that does not ask again keeps the delay, too, if it connects at once.
    servers = SlowServers(chance, asks=bool(seed % 4))
    custom = polite.CustomScope("customer", customer, polite.ScopeLimit(2.0, chance.choice([1, 2, 4])))
    pacing = polite.PacingPolicy(
        min_delay=chance.choice([0.0, 1.0, 5.0]),
        concurrency=chance.choice([1, 3]),
        scopes=polite.Scopes(custom=[custom], crawl=polite.ScopeLimit(0.25, 6)),
    )
    fetching = polite.FetchPolicy(connections=chance.choice([1, 2, 3]) if seed % 4 else 1)
    hosts = [f"{letter}.example" for letter in "abcdefghijkl"]
    urls = [f"https://{chance.choice(hosts)}/{number}" for number in range(60)]

    async with scripted_gate(servers, pacing=pacing, fetching=fetching) as gate, asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(servers.visit(gate, url))
            await asyncio.sleep(chance.choice([0.0, 0.0, 1.0, 5.0]))

    assert {url for _, url in servers.arrived} >= set(urls)
    _require_gaps(servers, lambda target: "all", 0.25)
    _require_gaps(servers, customer, 2.0)
    _require_gaps(servers, lambda target: target.origin.host, pacing.min_delay)


def _require_gaps(servers, scope_of, delay):
    times: dict[str, list[float]] = defaultdict(list)
    for at, url in servers.arrived:
        times[scope_of(polite.Target.of(url))].append(at)
    for scope, arrived in times.items():
        assert min(gaps(arrived), default=delay) >= delay, scope


@pytest.mark.parametrize("returned", ["site", None, (), ([],), ["site"], ("site", ([],))])
async def test_a_function_that_returns_no_scopes_is_named_with_the_url(returned):
    def groups(target):
        return returned

    custom = Scopes(custom=[polite.CustomScope("customer", lambda target: 5)])  # type: ignore[arg-type,return-value]
    for scopes, said in [(groups, r"scopes \(<function .*groups"), (custom, "CustomScope: what by returns")]:
        async with scripted_gate(pacing=PacingPolicy(scopes=scopes)) as gate:
            with pytest.raises(polite.InvalidOption, match=f"{said}.*https://a.test/robots.txt"):
                await visit(gate, "https://a.test/")


async def test_a_function_of_scopes_that_fails_and_a_limit_that_is_none_are_named() -> None:
    def fails(target: polite.Target) -> tuple[str, ...]:
        raise KeyError(target.url)

    def limited(target: polite.Target) -> tuple[str, ...]:
        return ("site",)

    def failing(target: polite.Target) -> tuple[str, ...]:
        return ("site",)

    limited.limit = lambda scope: 5  # type: ignore[attr-defined]
    failing.limit = lambda scope: {}[scope]  # type: ignore[attr-defined]
    for scopes, said in [
        (fails, "scopes .*fails.*KeyError.*a.test"),
        (Scopes(custom=[polite.CustomScope("customer", fails)]), "by failed for .*a.test.*KeyError"),  # type: ignore[arg-type]
        (limited, "limit returns for 'site'"),
        (failing, "limit failed for 'site'.*KeyError"),
    ]:
        async with scripted_gate(pacing=PacingPolicy(scopes=scopes)) as gate:
            with pytest.raises(polite.InvalidOption, match=said):
                await visit(gate, "https://a.test/")


async def test_a_limit_of_a_function_counts_for_the_narrowest_scope_too() -> None:
    def own(target: polite.Target) -> tuple[str, ...]:
        return (target.origin.host,)

    own.limit = lambda scope: ScopeLimit(delay=60.0)  # type: ignore[attr-defined]
    async with scripted_gate(pacing=PacingPolicy(scopes=own)) as gate:
        ends = [await visit(gate, f"https://a.test/{number}") for number in range(3)]
    assert gaps(ends) == [60.0, 60.0]
