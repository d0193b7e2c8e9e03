"""The HTTP server of a gate: who may ask, which operation answers, its limits, and its end."""

import asyncio
import os
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from polite.errors import InvalidOption, PoliteError
from polite.log import fields, log
from polite.serve.api import ApiError, Call, Field, Operation
from polite.serve.endpoints import OPEN, Services, refusal_of
from polite.status.server import BACKLOG, Access, LimitedServer, StatusServer

# Octets of a request's body, and seconds in which it must come.
_MOST_BODY, _BODY_S = 65_536, 10.0
# A connection without a request is closed after this (seconds).
_IDLE_S = 30.0


class GateServer:
    """Answers requests for operations, and passes others on to the status page.

    Args:
        services: What operations need.
        operations: The operations.
        access: Who may ask.
        status: The status page.
        max_connections: How many connections may be open; beyond them the oldest that has no request is closed.
    """

    def __init__(
        self,
        services: Services,
        operations: Sequence[Operation],
        access: Access,
        status: StatusServer,
        max_connections: int,
    ) -> None:
        self._services = services
        self._routes = {(each.method, each.path): each for each in operations}
        self._paths = {each.path for each in operations}
        self._access = access
        self._status = status
        self.http: LimitedServer = LimitedServer(self._handle, max_connections, idle_s=_IDLE_S)
        self._socket_file: tuple[Path, int] | None = None

    async def listen_unix(self, path: str) -> None:
        """Begin to listen at a socket that only this user may use. Raises InvalidOption, OSError."""
        await asyncio.to_thread(_remove_stale, path)
        listening = socket.socket(socket.AF_UNIX)
        # Before anything can connect.
        before = os.umask(0o177)
        try:
            listening.bind(path)
        except BaseException:
            listening.close()
            raise
        finally:
            os.umask(before)
        self._socket_file = Path(path).absolute(), Path(path).stat().st_ino  # noqa: ASYNC240 - one look
        loop = asyncio.get_running_loop()
        self.http.listening = await loop.create_unix_server(self.http, sock=listening, backlog=BACKLOG)

    async def close(self, grace_s: float) -> None:
        """Grant no more, wait so many seconds for reports of permits that are out, and end. May be called twice."""
        await self._services.permits.close(grace_s)
        await self.http.end()
        if self._socket_file is not None:
            path, inode = self._socket_file
            with suppress(OSError):
                # Another server may have replaced it.
                if path.stat().st_ino == inode:
                    path.unlink()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        # While it has a request, a connection is not closed for a new one.
        server, protocol = self.http, request.protocol
        transport = server.open.pop(protocol, None)
        server.busy += 1
        try:
            return await self._answer(request)
        except ApiError as error:
            return error.response()
        except PoliteError as error:
            return refusal_of(error).response()
        except (ConnectionError, EOFError, asyncio.CancelledError):
            raise
        except Exception:
            # Without the query, which may have a URL's secrets.
            log.exception("a request failed at %s", request.path, extra=fields("serve_failed"))
            return ApiError(500, "the server failed; its log says why").response()
        finally:
            server.busy -= 1
            if transport is not None and protocol.transport is not None:
                server.open[protocol] = transport

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path, question, _ = request.raw_path.partition("?")
        operation, held_id = self._routes.get((request.method, path)), ""
        if operation is None:
            above, _, held_id = path.rpartition("/")
            operation = self._routes.get((request.method, f"{above}/{{id}}"))
            if operation is None:
                if path in self._paths or f"{above}/{{id}}" in self._paths:
                    raise ApiError(405, f"{request.method} is not possible here")
                if path.startswith("/v1/"):
                    raise ApiError(404, "there is no such path: /openapi.json has all")
                return await self._status.answer(request)
        self._require_own_site(request)
        client = self._access.client(request.headers.get("Authorization"))
        if client is None:
            if path not in OPEN:
                raise ApiError(401, "a token is needed: Authorization: Bearer TOKEN")
            client = ""
        if request.method == "POST":
            values = operation.read_body(await self._body(request))
        else:
            values = operation.read(request.query if question else {}, Field.parse)
        return await operation.run(self._services, Call(request, client, held_id, values))

    def _require_own_site(self, request: web.BaseRequest) -> None:
        """Refuse what a browser sends for a page of another site. Raises ApiError."""
        headers = request.headers
        host = headers.get("Host")
        if not self._access.known_host(host):
            raise ApiError(421, "this Host is none of the server's names: see --name of polite serve")
        if headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none"):
            raise ApiError(403, "requests of other sites are refused")
        origin = headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise ApiError(403, "requests of other sites are refused")

    async def _body(self, request: web.BaseRequest) -> bytes:
        # A form of another site cannot have this type.
        if request.content_type != "application/json" or "Content-Encoding" in request.headers:
            raise ApiError(415, "the body must be JSON, not compressed: Content-Type: application/json")
        length = request.content_length
        if length is None or length > _MOST_BODY:
            status = 411 if length is None else 413
            raise ApiError(status, f"the body needs a Content-Length of at most {_MOST_BODY} octets")
        if request.content.is_eof():
            return await request.read()
        try:
            async with asyncio.timeout(_BODY_S):
                return await request.read()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the body did not come in time") from None


def _remove_stale(path: str) -> None:
    """Remove the socket file of a server that is no more. Raises InvalidOption, OSError."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise InvalidOption(f"serve: {path} is there, and no socket; choose another path")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
    raise InvalidOption(f"serve: another server listens at unix:{path}")
