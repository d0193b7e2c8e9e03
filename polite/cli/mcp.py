"""`polite mcp`: a server of the Model Context Protocol, with which an agent fetches pages politely: fetch, check, explain.

A page has its turn at a gate of this process, or at that of a running `polite serve`. markdownify makes its text, on lxml:
html.parser takes minutes for a megabyte of "<a".
"""

import argparse
import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from polite.cli.interrupts import interrupts
from polite.cli.main import parse
from polite.cli.options import agent_needed, fetching_of, is_unnamed, session_with
from polite.cli.terminal import Exit, message_of
from polite.errors import InvalidOption, PoliteError
from polite.gate.gate import Gate
from polite.integrations.session import gate_of, open_session
from polite.options import needing
from polite.origin import Target
from polite.pacing.policy import PacingPolicy
from polite.request_url import request_url
from polite.robots.decision import RobotsUnreachable
from polite.robots.exchange import as_sent
from polite.robots.policy import RobotsPolicy
from polite.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

# An encoded body would have to be inflated within limits.
_PLAIN = {"Accept-Encoding": "identity"}
_REDIRECTS, _MOST_REDIRECTS = frozenset({301, 302, 303, 307, 308}), 5
# Seconds for one call, the wait for its turn included: clients of the protocol wait for a minute.
_CALL_S = 50.0
# Characters of HTML that are made into text, and of one answer; pages that are kept; characters of a URL.
_MOST_HTML, _MOST_CHARACTERS, _KEPT, _MOST_URL = 500_000, 1_000_000, 8, 8_192
_HTML, _NO_TEXT = ("text/html", "application/xhtml+xml"), ("script", "style", "noscript", "template", "svg")
# RFC 6838: text, or of a kind that is text by its suffix.
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|javascript|x-ndjson|yaml)")


class Failed(Exception):
    """A call gives no page. The message is for the agent."""


class Page(NamedTuple):
    """A response: its URL after redirects, status, media type, and text; `whole` says if nothing of it is missing."""

    url: str
    status: int
    kind: str
    text: str
    whole: bool


class InProcess:
    """A gate of this process. Each redirect is checked, and has its own turn.

    Its methods raise PoliteError, Failed and aiohttp.ClientError.
    """

    def __init__(self, session: aiohttp.ClientSession, gate: Gate, max_bytes: int) -> None:
        self._session, self._gate, self._max_bytes = session, gate, max_bytes

    async def page(self, url: str) -> Page:
        """Fetch the URL."""
        target = Target.of(url)
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._session.get(request_url(target), headers=_PLAIN, allow_redirects=False) as head:
                location = head.headers.get("Location")
                if head.status not in _REDIRECTS or location is None:
                    return await _read(head, target.url, self._max_bytes)
                head.close()
            target = target.join(as_sent(location))
        raise Failed(f"{url}: more than {_MOST_REDIRECTS} redirects")

    async def told(self, what: str, url: str) -> str:
        """Return the answer to `check` or `explain`."""
        if what == "explain":
            return str(await self._gate.explain(url))
        return f"{Target.of(url).url}: {await self._gate.check(url)}"


class OfServer:
    """The gate of a running `polite serve`. It does the same."""

    def __init__(self, session: aiohttp.ClientSession, gate: str, max_bytes: int) -> None:
        self._session, self._gate, self._max_bytes = session, gate, max_bytes

    async def page(self, url: str) -> Page:
        async with self._get("fetch", url) as response:
            if "Polite-Url" not in response.headers:
                raise Failed(await self._refusal(response))
            return await _read(response, response.headers["Polite-Url"], self._max_bytes)

    async def told(self, what: str, url: str) -> str:
        async with self._get(what, url) as response:
            if response.status != 200:
                raise Failed(await self._refusal(response))
            said = await response.json()
        return str(said["explanation"]) if what == "explain" else f"{said['url']}: {said['text']}"

    def _get(self, what: str, url: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._session.get(f"{self._gate}/v1/{what}", params={"url": url}, allow_redirects=False)

    async def _refusal(self, response: aiohttp.ClientResponse) -> str:
        after = response.headers.get("Retry-After")
        try:
            text = str((await response.json())["error"])
        except (ValueError, KeyError, TypeError, aiohttp.ClientError):
            text = f"{self._gate} is no polite serve: it answered {response.status}"
        return text if after is None else f"{text}; try again in {after} s"


Source = InProcess | OfServer


async def _read(response: aiohttp.ClientResponse, url: str, most: int) -> Page:
    """Read a response up to `most` octets. Raises Failed for a status that is no success, and for what is no text."""
    if not 200 <= response.status < 300:
        after = response.headers.get("Retry-After")
        asked = "" if after is None else f"; it asks to wait for {after[:50]}"
        raise Failed(f"{url}: the site answered status {response.status}{asked}")
    kind, body = response.content_type, bytearray()
    if not _TEXT.fullmatch(kind):
        raise Failed(f"{url}: it is {kind}, and no text")
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            break
    try:
        text = body[:most].decode(response.charset or "utf-8", "replace")
    except LookupError:
        text = body[:most].decode("utf-8", "replace")
    return Page(url, response.status, kind, text, len(body) <= most)


def text_of(html: str) -> str:
    """Return the text of HTML as Markdown. Raises Failed if it is nested too deeply."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    try:
        soup = BeautifulSoup(html[:_MOST_HTML], "lxml")
        for each in soup(_NO_TEXT):
            each.decompose()
        return str(MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(soup)).strip()
    except RecursionError:
        raise Failed("the page is nested too deeply to be made into text: call fetch with raw=true") from None


class Texts:
    """The texts of pages. The last ones are kept, so that the next part of one needs no request."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: dict[tuple[str, bool], Page] = {}
        # A thread that computes takes the interpreter from the loop.
        self._converting = asyncio.Semaphore(1)

    async def part(self, url: str, start: int, most: int, *, raw: bool) -> str:
        """Return a part of a page. Raises what the source raises, and Failed."""
        if not start or (url, raw) not in self._kept:
            page = await self._source.page(url)
            if page.kind in _HTML and not raw:
                async with self._converting:
                    text = await asyncio.to_thread(text_of, page.text)
                page = page._replace(text=text, whole=page.whole and len(page.text) <= _MOST_HTML)
            self._kept[url, raw] = page
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        page, end = self._kept[url, raw], start + most
        said = [f"{page.url} (status {page.status}, {page.kind})", page.text[start:end] or "[no text here]"]
        if end < len(page.text):
            said.append(f"[{len(page.text) - end} characters more: call fetch with start_index={end}]")
        elif not page.whole:
            said.append("[the page is longer than the limit of this server: the rest was not read]")
        return "\n\n".join(said)


def _why(error: Exception) -> str:
    """Return why a call failed, for the agent."""
    match error:
        case RobotsUnreachable():
            return f"{message_of(error)}; try again in {error.retry_after_s:.0f} s"
        case PoliteError() | Failed():
            return message_of(error)
        case aiohttp.ClientError():
            return f"no response: {str(error) or type(error).__name__}"
        case _:
            return f"no answer within {_CALL_S:g} s, the wait for the site's turn included; explain says when it comes"


def server(source: Source) -> "MCPServer":
    """Return a server with the tools. Raises InvalidOption without the package mcp."""
    with needing("polite mcp needs the packages mcp, markdownify and lxml", "mcp"):
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp_types import ToolAnnotations
        from pydantic import Field

        text_of("")
    made, texts = MCPServer("polite", version=__version__, log_level="WARNING"), Texts(source)

    @asynccontextmanager
    async def answered() -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_CALL_S):
                yield
        except (PoliteError, Failed, TimeoutError, aiohttp.ClientError) as error:
            raise ToolError(_why(error)) from error

    reads = ToolAnnotations(read_only_hint=True, open_world_hint=True)
    tool = made.tool(annotations=reads, structured_output=False)

    @tool
    async def fetch(
        url: Annotated[str, Field(description="a URL with http or https", max_length=_MOST_URL)],
        max_length: Annotated[int, Field(description="most characters", ge=1, le=_MOST_CHARACTERS)] = 5_000,
        start_index: Annotated[int, Field(description="first character to return, of a long page", ge=0)] = 0,
        raw: Annotated[bool, Field(description="return the source, and not its text")] = False,  # noqa: FBT002
    ) -> str:
        """Fetch a page if robots.txt allows it, when its turn has come, and return its text as Markdown."""
        async with answered():
            return await texts.part(url, start_index, max_length, raw=raw)

    @tool
    async def check(url: Annotated[str, Field(max_length=_MOST_URL)]) -> str:
        """Say whether robots.txt allows a URL, and by which rule and line. The page is not fetched."""
        async with answered():
            return await source.told("check", url)

    @tool
    async def explain(url: Annotated[str, Field(max_length=_MOST_URL)]) -> str:
        """Say what decides about a URL now: rule, age of robots.txt, delay, next turn. The page is not fetched."""
        async with answered():
            return await source.told("explain", url)

    return made


@asynccontextmanager
async def source_for(options: argparse.Namespace) -> AsyncIterator[Source]:
    """Open what answers the tools."""
    if options.gate is not None:
        async with session_with(options.gate, headers=_PLAIN) as (session, gate):
            yield OfServer(session, gate, options.max_bytes)
        return
    asked: dict[str, Any] = {"robots": RobotsPolicy(dialect=options.dialect), "resolver": options.resolve}
    asked |= {"fetching": fetching_of(options), "pacing": PacingPolicy(min_delay=options.delay)}
    async with open_session(options.agent, **asked, journal=options.journal) as session:
        yield InProcess(session, gate_of(session), options.max_bytes)


def mcp(options: argparse.Namespace) -> Exit:
    """Serve on standard input and output until the client or a signal ends it. Raises InvalidOption, StoreFailed."""
    if options.gate is None and is_unnamed(options):
        raise agent_needed("polite mcp")
    if options.gate is not None:
        usual = parse(["mcp"])
        for name in ("journal", "delay", "agent", "dialect", "timeout", "allow_private", "resolve"):
            if getattr(options, name) != getattr(usual, name):
                raise InvalidOption(
                    f"--{name.replace('_', '-')} has no effect with --gate: polite serve has it"
                )
        if urlsplit(options.gate).scheme not in ("http", "https", "unix"):
            said = "must be the address of a polite serve: http://127.0.0.1:8700, or unix:PATH"
            raise InvalidOption(f"--gate {said}, got {options.gate!r}")
    asyncio.run(_serve(options))
    return Exit.ALLOWED


async def _serve(options: argparse.Namespace) -> None:
    async with interrupts() as interrupt:
        async with source_for(options) as source:
            serving = asyncio.create_task(server(source).run_stdio_async())
            signal = asyncio.create_task(interrupt.first.wait())
            await asyncio.wait([serving, signal], return_when=asyncio.FIRST_COMPLETED)
            signal.cancel()
            if serving.done():
                serving.result()
        if interrupt.status is not None:
            # A thread waits for standard input, which the client alone can end. The gate is closed by now.
            os._exit(interrupt.status)
