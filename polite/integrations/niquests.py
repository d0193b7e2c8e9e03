"""niquests: adapters that wait at a gate before each request, redirect hops, retries and logins included."""

from typing import Any

from polite import blocking
from polite.gate.gate import Gate
from polite.integrations.hop import PoliteSending, needing, require_gate, run_now

with needing("niquests", "niquests"):
    from niquests import AsyncResponse, PreparedRequest, RequestException, Response
    from niquests.adapters import AsyncHTTPAdapter, HTTPAdapter
    from niquests.models import parse_url  # type: ignore[attr-defined]  # that of its urllib3
    from niquests.utils import default_user_agent


class _Sending(PoliteSending):
    _base_error = RequestException
    _default_agent = staticmethod(default_user_agent)
    _parse_url = staticmethod(parse_url)


class PoliteAdapter(_Sending, HTTPAdapter):
    """An adapter for `niquests.Session.mount`, as that of `polite.integrations.requests`.

    It sends one request at a time for each origin, so `multiplexed=True` has no effect.

    Args:
        gate: A gate of `polite.blocking`. The adapter does not close it.
        options: Those of `niquests.adapters.HTTPAdapter`.
    """

    def __init__(self, gate: blocking.Gate, **options: Any) -> None:
        require_gate(gate, user="PoliteAdapter", threads=True)
        super().__init__(**options)
        self._gate = gate

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Send a request in its turn."""
        options["multiplexed"] = False
        response: Response = run_now(self.exchange(request, args, options, super().send))
        return response


class AsyncPoliteAdapter(_Sending, AsyncHTTPAdapter):
    """An adapter for `niquests.AsyncSession.mount`.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate, niquests.AsyncSession() as session:
            session.mount("https://", AsyncPoliteAdapter(gate))
            session.mount("http://", AsyncPoliteAdapter(gate))
            response = await session.get("https://example.com/about")

    Args:
        gate: A gate of `polite.open_gate`. The adapter does not close it.
        options: Those of `niquests.adapters.AsyncHTTPAdapter`.
    """

    def __init__(self, gate: Gate, **options: Any) -> None:
        require_gate(gate, user="AsyncPoliteAdapter")
        super().__init__(**options)
        self._gate = gate

    async def send(self, request: PreparedRequest, *args: Any, **options: Any) -> AsyncResponse:
        """Send a request in its turn."""
        options["multiplexed"] = False
        response: AsyncResponse = await self.exchange(request, args, options, super().send)
        return response
