"""requests: an adapter that waits at a gate for threads before each request, redirect hops, retries and logins included."""

from typing import Any

from polite import blocking
from polite.integrations.hop import PoliteSending, needing, require_gate, run_now

with needing("requests", "requests"):
    from requests import PreparedRequest, RequestException, Response
    from requests.adapters import HTTPAdapter
    from requests.utils import default_user_agent
    from urllib3.util import parse_url


class PoliteAdapter(PoliteSending, HTTPAdapter):
    """An adapter for `session.mount`. Mount it for `https://` and `http://`, and no other adapter for what a crawl fetches.

    Example:
        with polite.blocking.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate, requests.Session() as session:
            session.mount("https://", PoliteAdapter(gate))
            session.mount("http://", PoliteAdapter(gate))
            print(session.get("https://example.com/about").text)

    Each redirect hop, each retry of `max_retries` and each request of a login is checked, waits for its own turn, and is reported.
    A response holds its turn until its body is read or closed. The gate's User-Agent is sent. Time-outs do not count the wait. If
    the gate has a signer, each request is signed before it connects, and `max_retries` raises InvalidOption.

    While a request is sent, these are raised, each also as a `requests.RequestException`:

        Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded: As by `gate.permit`.
        PermitMisused: The thread has the response open whose turn it would wait for.
        InvalidUserAgent: The session or the request has another User-Agent than the gate.
        RuntimeError: An event loop runs in the thread.

    Args:
        gate: A gate of `polite.blocking`. The adapter does not close it.
        options: Those of `requests.adapters.HTTPAdapter`. A `Retry` decides whether a request is sent again; the gate decides when.
    """

    _base_error = RequestException
    _default_agent = staticmethod(default_user_agent)
    _parse_url = staticmethod(parse_url)

    def __init__(self, gate: blocking.Gate, **options: Any) -> None:
        require_gate(gate, user="PoliteAdapter", threads=True)
        super().__init__(**options)
        self._gate = gate

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Send a request in its turn."""
        response: Response = run_now(self.exchange(request, args, options, super().send))
        return response
