"""What a request needs from outside: a transport, the addresses of its host, and a signature."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from polite.origin import Target
from polite.robots.exchange import Ask, Failed, Reply

if TYPE_CHECKING:
    from yarl import URL


class Transport(Protocol):
    """Fetches robots.txt by one URL scheme: `open_gate(transports={"gopher": GopherTransport()})` (L9).

    `Ask`, `Reply` and `Failed` are importable from `polite.ports`, too.
    """

    async def get(self, ask: Ask) -> Reply | Failed:
        """Send one unconditional request without following redirects.

        When the connection is there, `await ask.ready()` first: connecting may have taken longer than the delay of a scope. The
        body is read only for 2xx, up to `ask.max_bytes`. If the scheme has header fields, those that `ask.signed()` returns are
        sent; call it just before. Any exception but a cancellation counts as unreachable.

        Returns:
            A Reply, or Failed with the reason.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@runtime_checkable
class StreamingTransport(Transport, Protocol):
    """A Transport that can pass a large body on in pieces. Optional: without it, a sitemap has 16 MiB at most."""

    async def stream(
        self, ask: Ask, begun: Callable[[Reply], None], take: Callable[[bytes], Awaitable[None]]
    ) -> Reply | Failed:
        """Send one request as `get` does, and pass the body on instead of keeping it.

        Args:
            ask: The request; `max_bytes` counts octets as they are sent.
            begun: Called once, as soon as the response's head is there, with a Reply without a body.
            take: Awaited with each piece of the body of a 2xx response: not decoded if it is in gzip. What it raises is raised.

        Returns:
            A Reply without a body, whose `end` says how the body ended, or Failed with the reason.
        """
        ...


class AddressSource(Protocol):
    """Looks up the addresses of hosts for `Scopes(address=...)`: `open_gate(addresses=source)`."""

    async def addresses(self, host: str) -> tuple[Sequence[str], float]:
        """Return all addresses of a host, and the seconds for which they are valid.

        It must end by itself, since all requests of the host wait for it.

        Raises:
            OSError: The host has no address.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@runtime_checkable
class Signer(Protocol):
    """Signs requests, so that servers can tell who sends them: `open_gate(signer=signer)`. `polite.WebBotAuth` is one."""

    def sign(self, method: str, target: Target, now: float) -> Mapping[str, str]:
        """Return the header fields that sign one request; none if it is not to be signed.

        Called on the event loop for each request, when that is sent, so it must return at once. What it raises fails the request: a
        RuntimeError, which counts as no failure of the server. robots.txt then counts as unreachable (Reason.SIGNER_FAILED).

        Args:
            method: The method, as sent.
            target: The URL. The fields must be of no use at another authority.
            now: Unix time.
        """
        ...


def request_url(target: Target) -> "URL":
    """Return the URL that aiohttp sends letter by letter. It would rewrite a str: `%3A` to `:`, and `/a?` to `/a`."""
    # Imported here, so that `import polite` loads no HTTP client.
    from yarl import URL

    if target.path.find("?") == len(target.path) - 1:
        # yarl loses an empty query, unless it is a part of the path.
        return URL(target.origin.text, encoded=True).with_path(target.path, encoded=True)
    return URL(target.url, encoded=True)
