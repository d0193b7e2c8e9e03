"""RedisLink: the connection to a Redis or Valkey server, Sentinel or cluster, and Patience. It needs the package `redis`.

redis-py never sends a command again by itself: a batch that ran although its answer was lost must be followed by one that says so.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from redis import exceptions
from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.client import NEVER_DECODE

from polite.errors import InvalidOption, StoreFailed
from polite.options import number
from polite.ports import Clock
from polite.stores.redis.address import Address, Kind
from polite.stores.redis.step import PATIENCE_S, Unreached, away

T = TypeVar("T")

# Seconds for one call, and of these for a connection.
CALL_S, CONNECT_S = 2.5, 1.0
# Calls at one time beside steps: a crawl that begins loads many robots.txt, and must not open a connection for each.
_MAX_CALLS = 16

# Errors that pass by themselves: the server is not there, is not the master, is busy, or moves slots.
_PASSING = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    OSError,
    exceptions.ReadOnlyError,
    exceptions.ClusterError,
    exceptions.RedisClusterException,
    exceptions.AskError,
    exceptions.TryAgainError,
)
_PASSING_CODES = {
    *("BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"),
    *("READONLY", "NOREPLICAS", "MISCONF", "MOVED", "ASK"),
}
# A script met a slot that is being moved.
_MOVING = "non local key"
_COMMAND = re.compile(r"'([A-Za-z0-9|_-]+)' command|run the '([A-Za-z0-9|_-]+)'")

# The error of one Sentinel, after the representation of its client.
_OF_A_SENTINEL = re.compile(r"> - (?:\w+:)?(\w+)")
# Before Redis 7.2, it is not told which command of a script is forbidden.
_BY_A_SCRIPT = "The user executing the script can't"
# The server names the user, which is one of the credentials.
_USER = re.compile(r"\b[Uu]ser \S+ has")


class Script:
    """A Lua script, called by its SHA-1 sum.

    Args:
        name: The file beside this one, without `.lua`.
    """

    def __init__(self, name: str) -> None:
        self.text: str = Path(__file__).with_name(f"{name}.lua").read_text(encoding="utf-8")
        self.sha: str = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_STEP = Script("step")


class RedisLink:
    """A connection, used by all that talks to one server.

    Args:
        client: A client of redis.asyncio.
        name: The address without credentials.
        own: Whether `close` closes the client.

    Attributes:
        name: The address without credentials.
    """

    def __init__(self, client: "Redis | RedisCluster", name: str, *, own: bool) -> None:
        self.name = name
        self._client = client
        self._own = own
        self._calls = asyncio.Semaphore(_MAX_CALLS)
        client.set_retry(_no_retry())

    @classmethod
    def to(cls, address: Address) -> "RedisLink":
        """Return a link to an address; nothing is connected yet."""
        return cls(_client(address), address.name, own=True)

    @classmethod
    def of(cls, client: object) -> "RedisLink":
        """Return a link that uses a client of redis.asyncio, and leaves it open. Raises InvalidOption for another object."""
        if not isinstance(client, Redis | RedisCluster):
            kind = f"{type(client).__module__}.{type(client).__qualname__}"
            raise InvalidOption(
                f"store must be a URL, or a Redis or RedisCluster of redis.asyncio, got a {kind}"
            )
        return cls(client, _name_of(client), own=False)

    def __repr__(self) -> str:
        return f"<RedisLink to {self.name}>"

    @property
    def is_cluster(self) -> bool:
        """Whether a cluster is addressed as one."""
        return isinstance(self._client, RedisCluster)

    async def step(self, prefix: str, request: str) -> str:
        """Run step.lua once, and return its reply.

        Raises:
            Unreached: The server was not reached, or the answer was lost.
            StoreFailed: No waiting helps.
        """
        # Two keys, of which the first never exists: while the slot is being moved key by key, the server then answers TRYAGAIN
        # before the script begins, instead of running it on the half that is there.
        keys = (prefix, f"{prefix}m")
        reply = await self._timed(self._run(_STEP, keys, (request,)), prefix)
        return reply if isinstance(reply, str) else reply.decode()

    async def run(self, script: Script, keys: Sequence[str], *arguments: str | bytes | int) -> Any:  # noqa: ANN401 - as the script says
        """Run another script, whose keys have one slot. Errors are as for `step`."""
        async with self._calls:
            return await self._timed(self._run(script, keys, arguments), keys[0])

    async def call(self, *command: str | bytes | int, node: ClusterNode | None = None) -> Any:  # noqa: ANN401 - as the command says
        """Run a command, on a cluster at its key's node or at `node`. Errors are as for `step`."""
        where = {} if node is None else {"target_nodes": node}
        async with self._calls:
            return await self._timed(self._client.execute_command(*command, **where))

    async def masters(self) -> Sequence[ClusterNode | None]:
        """Return the masters of a cluster as `call` takes them; elsewhere [None]. Errors are as for `step`."""
        if not isinstance(self._client, RedisCluster):
            return [None]
        await self._timed(self._client.initialize())
        return list(self._client.get_primaries())

    async def close(self) -> None:
        """Close the client, if it is ours. May be called twice."""
        if not self._own:
            return
        await self._client.aclose()
        pool = None if isinstance(self._client, RedisCluster) else self._client.connection_pool
        if isinstance(pool, SentinelConnectionPool):
            # The pool's own connections lead to the master alone.
            for sentinel in pool.sentinel_manager.sentinels:
                await sentinel.aclose()

    async def _run(self, script: Script, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:  # noqa: ANN401
        execute, given = partial(self._client.execute_command, **{NEVER_DECODE: True}), (*keys, *arguments)
        try:
            return await execute("EVALSHA", script.sha, len(keys), *given)
        except exceptions.NoScriptError:
            # The cache of scripts survives neither a restart nor a failover.
            return await execute("EVAL", script.text, len(keys), *given)

    async def _timed(self, calling: Any, key: str = "polite:") -> Any:  # noqa: ANN401 - an awaitable of redis-py, and what it returns
        """Await it for a limited time. `key` is what its keys begin with."""
        try:
            async with asyncio.timeout(CALL_S):
                return await calling
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
            raise translated(error, self.name, key) from error


# Seconds between two attempts, doubled each time.
_FIRST_S, _LAST_S = 0.05, 1.0


class Patience:
    """Repeats calls that did not reach the server.

    Args:
        name: The server's address without credentials.
        limit_s: Seconds after which a call fails.
    """

    def __init__(self, name: str, clock: Clock, limit_s: float = PATIENCE_S) -> None:
        self._name = name
        self._clock = clock
        self._limit_s = number("patience", limit_s, most=86_400)
        self._away: tuple[float, str] | None = None  # since (lasting), the last error

    async def wait_for(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what `call` returns, once the server is reached.

        Raises:
            StoreFailed: It was not, for the limit; or the call's own.
        """
        try:
            # It bounds the wait behind other calls, too.
            async with asyncio.timeout(self._limit_s) as limit:
                return await self._repeated(call, limit)
        except TimeoutError as error:
            raise self._failed() from error

    async def _repeated(self, call: Callable[[], Awaitable[T]], limit: asyncio.Timeout) -> T:
        pause_s = _FIRST_S
        while True:
            try:
                result = await call()
            except Unreached as error:
                since, _ = self._away or (self._clock.lasting(), "")
                self._away = since, str(error)
                if limit.expired():
                    # redis-py may answer a cancellation by an error of its own, and there is no second one.
                    raise TimeoutError from error
            else:
                self._away = None
                return result
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_S)

    def _failed(self) -> StoreFailed:
        if self._away is None:
            why = f"a call waited {self._limit_s:g} s behind others: the server is too slow"
            return StoreFailed(f"{self._name}: {why}", may_pass=True)
        since, because = self._away
        return away(self._name, self._clock.wall(), self._clock.lasting() - since, because)


def translated(error: Exception, name: str, key: str = "polite:") -> Unreached | StoreFailed:
    """Return what an error of redis-py means for a crawl; the message says what to change.

    Args:
        error: The error.
        name: The address without credentials.
        key: What the keys of the command begin with.
    """
    text = " ".join(str(error).split())
    text = _no_master(text) if isinstance(error, MasterNotFoundError) else text[:300]
    match error:
        case exceptions.AuthenticationError() | exceptions.AuthorizationError():
            wrong = (
                f"the server refuses the user or the password ({text}): write them into the address as "
                "redis://user:password@host, or set POLITE_STORE_PASSWORD for the command line"
            )
        case exceptions.NoPermissionError():
            wrong = _no_permission(text)
        case exceptions.OutOfMemoryError():
            wrong = f"the server's memory is full ({text}): raise its maxmemory, or purge what is no longer needed"
        case exceptions.NoScriptError():
            wrong = "the server forgets scripts at once (NOSCRIPT twice): no proxy may stand between"
        case exceptions.InvalidResponse():
            wrong = f"it does not speak the protocol of Redis ({text}): is this the right host and port?"
        case _ if isinstance(error, _PASSING) or text.partition(" ")[0] in _PASSING_CODES or _MOVING in text:
            # A connection that is refused or broken is not slow: most often the address is wrong.
            late = isinstance(error, (exceptions.TimeoutError, TimeoutError))
            slow = late or isinstance(error, (exceptions.BusyLoadingError, exceptions.ResponseError))
            silent = f"no answer within {CALL_S:g} s" if isinstance(error, TimeoutError) else ""
            return Unreached(silent or text or type(error).__name__, slow=slow)
        case exceptions.ResponseError() if text.startswith("OOM"):
            return translated(exceptions.OutOfMemoryError(text), name)
        case exceptions.ResponseError() if (
            text.startswith("NOPERM") or "ACL failure" in text or _BY_A_SCRIPT in text
        ):
            wrong = _no_permission(text)
        case exceptions.ResponseError() if text.startswith("WRONGTYPE"):
            wrong = (
                f"a key that begins with {key} has another type, so another program uses this name (WRONGTYPE): "
                "choose another crawl, or another database"
            )
        case exceptions.ResponseError() if "DB index" in text:
            wrong = (
                f"the server has no such database ({text}): choose a lower number, or raise its `databases`"
            )
        case exceptions.ResponseError() if "unknown command 'SENTINEL'" in text:
            scheme, _, rest = name.partition("+sentinel://")
            wrong = f"this server is no Sentinel; a single server has an address such as {scheme}://{rest.partition('/')[0]}"
        case _:
            wrong = f"the server refuses a command: {text}"
    return StoreFailed(f"{name}: {wrong}")


def _no_master(text: str) -> str:
    """Say what became of the Sentinels. redis-py tells it after each of its clients, with all their settings."""
    errors = sorted(set(_OF_A_SENTINEL.findall(text)))
    service = text.partition(" : ")[0].removeprefix("No master found for ")
    return f"no Sentinel names a master of {service} ({', '.join(errors) or 'is this their name for it?'})"


def _no_permission(text: str) -> str:
    found = _COMMAND.search(text)
    if _BY_A_SCRIPT in text and "command" in text:
        return (
            f"the server's ACL forbids a command of a script ({text}): permit the user all commands of the rules in "
            "docs/how-to/many-machines.md"
        )
    rule = "~polite:*" if found is None else f"+{(found[1] or found[2]).lower()}"
    text = _USER.sub("The user has", text)
    return f"the server's ACL forbids it ({text}): ACL SETUSER <user> {rule} permits it"


def _no_retry() -> Retry:
    return Retry(NoBackoff(), 0)


def _client(address: Address) -> "Redis | RedisCluster":
    user, password = address.login
    options: dict[str, Any] = {"username": user, "password": password, "retry": _no_retry(), "protocol": 2}
    # With driver_info, each connection begins with CLIENT SETINFO, twice.
    options |= {"driver_info": None, "socket_timeout": CALL_S, "socket_connect_timeout": CONNECT_S}
    if address.secure:
        options |= {"ssl": True, **address.options}
    if address.kind is Kind.CLUSTER:
        nodes = [ClusterNode(host, port) for host, port in address.nodes]
        return RedisCluster(startup_nodes=nodes, **options)
    options["db"] = address.database
    if address.kind is Kind.SENTINEL:
        return _of_sentinels(address, options)
    if address.path is not None:
        return Redis(unix_socket_path=address.path, **options)
    ((host, port),) = address.nodes
    return Redis(host=host, port=port, **options)


def _of_sentinels(address: Address, options: dict[str, Any]) -> Redis:
    """Return a client that asks the Sentinels for the master at each new connection, so also after a failover."""
    user, password = address.sentinel_login
    theirs = {**options, "username": user, "password": password, "db": 0}
    sentinels = Sentinel(address.nodes, sentinel_kwargs=theirs)  # type: ignore[no-untyped-call]
    master: Redis = sentinels.master_for(address.service, **options)
    return master


def _name_of(client: "Redis | RedisCluster") -> str:
    """Return where a client goes, without credentials."""
    if isinstance(client, RedisCluster):
        return f"redis+cluster://{','.join(f'{node.host}:{node.port}' for node in client.startup_nodes)}"
    pool = client.connection_pool
    if isinstance(pool, SentinelConnectionPool):
        return f"redis+sentinel://.../{pool.service_name}"
    options = pool.connection_kwargs
    where = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"{'unix' if 'path' in options else 'redis'}://{where}/{options.get('db') or 0}"
