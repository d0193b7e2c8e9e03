"""A user's stores and transports, checked: what they raise, or return that is nonsense, becomes an error that names them."""

import asyncio
import inspect
import re
import reprlib
from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Any

from polite import ports
from polite.errors import InvalidOption, StoreFailed
from polite.gate.fetcher import SignerFailed
from polite.log import fields, log
from polite.options import wrong_field
from polite.origin import Origin, Target
from polite.robots.snapshot import Snapshot

# RFC 3986, 3.1.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_STATUSES = range(100, 1_000)


def checked_store(store: ports.RobotsStore | None) -> ports.RobotsStore | None:
    """Return a store whose errors are StoreFailed and name it. polite's own do so by themselves."""
    if store is None or _is_ours(store):
        return store
    return CheckedBackOffStore(store) if isinstance(store, ports.BackOffStore) else CheckedStore(store)


def checked_validators(store: ports.ValidatorStore | None) -> ports.ValidatorStore | None:
    """Return a store of validators, likewise."""
    return store if store is None or _is_ours(store) else CheckedValidators(store)


def checked_transports(given: Mapping[str, ports.Transport]) -> dict[str, ports.Transport]:
    """Return transports by their schemes in lower case. What one raises or returns names it. Raises InvalidOption."""
    found: dict[str, ports.Transport] = {}
    checked: dict[int, ports.Transport] = {}
    for scheme, transport in given.items():
        # A user's mapping may have anything.
        name = str(scheme).lower()
        if not _SCHEME.fullmatch(name) or name in found:
            wrong = "is there twice" if name in found else "is no URL scheme: write https, without a colon"
            raise InvalidOption(f"transports: the scheme {scheme!r} {wrong}")
        methods = (getattr(transport, name, None) for name in ("get", "close"))
        if isinstance(transport, type) or not all(map(callable, methods)):
            raise InvalidOption(f"transports[{scheme!r}] must be a polite.ports.Transport, got {transport!r}")
        # One may serve several schemes, and is closed once.
        if id(transport) not in checked:
            streams = isinstance(transport, ports.StreamingTransport)
            kind = CheckedStreamingTransport if streams else CheckedTransport
            checked[id(transport)] = transport if _is_ours(transport) else kind(transport)
        found[name] = checked[id(transport)]
    return found


def _is_ours(part: object) -> bool:
    return type(part).__module__.startswith("polite.")


class _Checked:
    """A user's part of a gate: an error of one of its methods names that."""

    # What it must raise, and may: any other error of its own is wrapped.
    _failure: type[Exception] = StoreFailed
    _raised: tuple[type[Exception], ...] = (StoreFailed,)

    def __init__(self, part: Any) -> None:  # noqa: ANN401 - a port of any kind
        self._part = part

    async def close(self) -> None:
        await self._call(self._part.close)

    def __repr__(self) -> str:
        return f"<checked {self._part!r}>"

    async def _call(
        self,
        method: Callable[..., Awaitable[object]],
        *args: object,
        needed: type | None = None,
        optional: bool = True,
        passes: tuple[type[Exception], ...] = (),
    ) -> Any:  # noqa: ANN401 - a `needed`
        """Call a method with what it is about, the first argument. Return what it returned: a `needed`, or None if `optional`."""
        try:
            result = await method(*args)
        except (*self._raised, *passes):
            raise
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            # If this task was not cancelled, a CancelledError is the part's own, a failure like any other.
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            raise self._failure(f"{self._named(method, *args)} raised {error!r}") from error
        if needed is not None and not (optional and result is None):
            wanted = f"a {needed.__name__}{' or None' if optional else ''}"
            self._require(self._named(method, *args), result, needed, wanted)
        return result

    def _require(self, call: str, result: object, needed: type | UnionType, wanted: str) -> None:
        if not isinstance(result, needed):
            raise self._failure(f"{call} returned {reprlib.repr(result)}: {wanted} is needed")
        if (wrong := wrong_field(result)) is not None:
            raise self._failure(f"{call} returned nonsense: {wrong}")

    def _now(self, method: Callable[..., object], *args: object) -> None:
        """Call a method that returns at once. Raises StoreFailed."""
        try:
            result = method(*args)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("it is a coroutine, and must return at once")  # noqa: TRY301
        except Exception as error:
            raise StoreFailed(f"{self._named(method, *args)} raised {error!r}") from error

    def _named(self, method: Callable[..., object] | str, *args: object) -> str:
        about = getattr(args[0], "url", args[0]) if args else ""
        # A functools.partial has no name of its own.
        name = getattr(getattr(method, "func", method), "__name__", method)
        return f"{type(self._part).__qualname__}.{name}({about})"


class CheckedStore(_Checked):
    """A RobotsStore."""

    async def load(self, origin: Origin) -> Snapshot | None:
        return await self._call(self._part.load, origin, needed=Snapshot)  # type: ignore[no-any-return]

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        await self._call(self._part.save, origin, snapshot)


class CheckedBackOffStore(CheckedStore):
    """A BackOffStore."""

    def hold(self, origin: Origin, back_off: ports.SavedBackOff) -> None:
        try:
            self._now(self._part.hold, origin, back_off)
        except StoreFailed as error:
            # `hold` never raises: the back-off runs, and is lost with this process.
            store = type(self._part).__qualname__
            extra = fields("back_offs_unsaved", count=1, origin=origin, store=store, error=error)
            log.warning("a back-off of %s is not kept: %s", origin, error, extra=extra)

    async def held(self, origin: Origin) -> ports.SavedBackOff | None:
        found = await self._call(self._part.held, origin, needed=ports.SavedBackOff)
        if found is not None and not found.until - found.since <= ports.LONGEST_BACK_OFF_S:
            said = f"{self._named(self._part.held, origin)} returned {found!r}: a back-off ends within 366 days of its beginning"
            raise StoreFailed(said)
        return found  # type: ignore[no-any-return]


class CheckedValidators(_Checked):
    """A ValidatorStore."""

    async def validators(self, target: Target) -> ports.Validators:
        ask, needed = self._part.validators, ports.Validators
        return await self._call(ask, target, needed=needed, optional=False)  # type: ignore[no-any-return]

    def remember(self, target: Target, validators: ports.Validators) -> None:
        self._now(self._part.remember, target, validators)


class CheckedTransport(_Checked):
    """A Transport. A RuntimeError names it, and counts as unreachable."""

    _failure = RuntimeError
    _raised = ()

    async def get(self, ask: ports.Ask) -> ports.Reply | ports.Failed:
        response = await self._call(self._part.get, ask, passes=(SignerFailed, TimeoutError))
        return self._response("get", response)

    def _named(self, method: Callable[..., object] | str, *_: object) -> str:
        name = method if isinstance(method, str) else "close" if method == self._part.close else "get"
        return f"{type(self._part).__qualname__}.{name}"

    def _response(self, method: str, response: Any) -> ports.Reply | ports.Failed:  # noqa: ANN401 - of a user's transport
        call = self._named(method)
        self._require(call, response, ports.Reply | ports.Failed, "a Reply or a Failed of polite.ports")
        if isinstance(response, ports.Reply) and response.status not in _STATUSES:
            raise RuntimeError(f"{call} returned nonsense: Reply.status is {response.status}")
        found: ports.Reply | ports.Failed = response
        return found


class CheckedStreamingTransport(CheckedTransport):
    """A StreamingTransport. What it raises may be what `take` raised, and stays."""

    async def stream(
        self, ask: ports.Ask, begun: Callable[[ports.Reply], None], take: Callable[[bytes], Awaitable[None]]
    ) -> ports.Reply | ports.Failed:
        def began(reply: ports.Reply) -> None:
            self._response("stream", reply)
            begun(reply)

        return self._response("stream", await self._part.stream(ask, began, take))
