"""Sitemaps: the entries of a site, one file after another, each fetched in its turn."""

import asyncio
import tempfile
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import BinaryIO

from polite.errors import InvalidURL, OriginDeclined, TurnLost
from polite.gate.fetcher import NetworkTimeout
from polite.gate.permit import Permit
from polite.gate.rules_cache import OriginRules
from polite.gate.services import Services
from polite.http.header_fields import REDIRECTS
from polite.origin import Origin, Target
from polite.ports import Ask, Failed, Reply, StreamingTransport
from polite.robots.decision import Disallowed, RobotsUnreachable
from polite.robots.exchange import BodyEnd, as_sent, downgrades
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, Robots, parse
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.robots.result import Unreachable
from polite.sitemaps.entry import SitemapEntry, SitemapFile, SitemapLink, SitemapPolicy
from polite.sitemaps.parser import SitemapParser
from polite.terms.tdm import TDM_LIMIT, TDM_PATH, TdmFile, parse_tdm_file, reserved_whole

# Octets of a file that are kept in memory, and that are parsed at a time.
_IN_MEMORY, _PIECE = 1 << 20, 65_536


class Spool:
    """Takes a body as fast as it comes, so that no permit is held while its reader is slow. Write it, then read it once.

    Args:
        in_memory: Octets that are kept in memory. The file has no name, so that nothing is left of a process that is killed.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._octets = bytearray()
        self._in_memory = in_memory
        self._file: BinaryIO | None = None

    async def write(self, octets: bytes) -> None:
        """Keep more octets. Raises OSError if the temporary file cannot be written."""
        self._octets += octets
        if len(self._octets) > self._in_memory:
            full, self._octets = self._octets, bytearray()
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
            await asyncio.to_thread(self._file.write, full)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield all octets, in pieces of at most 64 KiB. Raises OSError."""
        if self._file is not None:
            await asyncio.to_thread(self._file.seek, 0)
            while piece := await asyncio.to_thread(self._file.read, _PIECE):
                yield piece
        for start in range(0, len(self._octets), _PIECE):
            yield bytes(self._octets[start : start + _PIECE])

    def close(self) -> None:
        """Forget the octets. May be called twice."""
        self._octets = bytearray()
        if self._file is not None:
            # A write that goes on in its thread has the file's lock, and ends first.
            self._file.close()


_UNREADABLE = {
    BodyEnd.UNKNOWN_CODING: Reason.CODING_UNKNOWN.value,
    BodyEnd.CORRUPT: Reason.BODY_CORRUPT.value,
}
# Octets of a body that a transport can only return whole.
_MOST_WHOLE = 16 << 20
# Times that a turn may be lost to another process before the file is given up.
_MOST_LOST = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch.

    Attributes:
        target: What was requested last.
        status: The last response's status, or None.
        problem: Why there is no body; None if there is one.
        cut_short: Whether the connection broke off within the body.
        too_long: Whether the body is longer than the limit.
        disallowed: Whether robots.txt disallows the file, or a redirect of it.
    """

    target: Target
    status: int | None = None
    problem: str | None = None
    cut_short: bool = False
    too_long: bool = False
    disallowed: bool = False


@dataclass(slots=True)
class FileFetch:
    """One file being fetched.

    Attributes:
        take: Awaited with each piece of the body, while the turn is held.
        policy: Limits the redirects that are followed, each in its turn, and the seconds on the network, redirects included.
        max_bytes: Octets as they are sent.
    """

    services: Services
    take: Callable[[bytes], Awaitable[None]]
    policy: SitemapPolicy | FetchPolicy
    max_bytes: int
    _spent_s: float = field(default=0.0, init=False)

    async def run(self, target: Target) -> Fetched:
        """Fetch, and follow redirects. Raises what waiting for a permit raises, except for Disallowed."""
        visited = {target.url}
        while True:
            try:
                response = await self._send(target)
            except (Disallowed, OriginDeclined, TurnLost) as error:
                disallowed = isinstance(error, Disallowed) and not isinstance(error, RobotsUnreachable)
                problem = str(error.decision) if isinstance(error, Disallowed) else str(error)
                return Fetched(target, problem=problem, disallowed=disallowed)
            if isinstance(response, Failed):
                return Fetched(target, response.status, response.detail or response.reason.value)
            if response.status not in REDIRECTS:
                well = 200 <= response.status < 300
                failed = f"the server returned status {response.status}"
                wrong = _UNREADABLE.get(response.end) if well else failed
                cut_short, too_long = response.end is BodyEnd.CUT_SHORT, response.end is BodyEnd.CAPPED
                return Fetched(target, response.status, wrong, cut_short, too_long)
            following = self._following(target, response, visited)
            if isinstance(following, str):
                return Fetched(target, response.status, following)
            visited.add(following.url)
            target = following

    async def _send(self, target: Target) -> Reply | Failed:
        """Send one request in its turn; again if that was lost."""
        for _ in range(_MOST_LOST - 1):
            with suppress(TurnLost):
                return await self._send_once(target)
        return await self._send_once(target)

    async def _send_once(self, target: Target) -> Reply | Failed:
        downloads, clock = self.services.downloads, self.services.clock
        transport = downloads.transports[target.origin.scheme]
        async with Permit(self.services, target) as permit, downloads.connections:
            reported = False

            def begun(reply: Reply) -> None:
                nonlocal reported
                reported = True
                said = {
                    "Retry-After": reply.retry_after,
                    "RateLimit": reply.rate_limit,
                    "RateLimit-Policy": reply.rate_limit_policy,
                }
                headers = {name: value for name, value in said.items() if value is not None}
                permit.report(status=reply.status, headers=headers)

            async def taken(piece: bytes) -> None:
                permit.received(len(piece))
                await self.take(piece)

            async def send(ask: Ask) -> Reply | Failed:
                if isinstance(transport, StreamingTransport):
                    return await transport.stream(ask, begun, taken)
                response = await transport.get(replace(ask, max_bytes=min(ask.max_bytes, _MOST_WHOLE)))
                if isinstance(response, Reply):
                    begun(response)
                    await taken(response.body)
                return response

            # It may have waited for a connection.
            await permit.ready()
            started = clock.monotonic()
            network = NetworkTimeout(max(0.0, self.policy.timeout - self._spent_s), permit.ready)
            ask = Ask(target, self.max_bytes)
            response = await downloads.answer(ask, send, network, self.policy, file=True)
            self._spent_s += clock.monotonic() - started
            unsigned = isinstance(response, Failed) and response.reason is Reason.SIGNER_FAILED
            if not reported and not unsigned:
                # No response came.
                permit.report(status=0)
        return response

    def _following(self, target: Target, reply: Reply, visited: set[str]) -> Target | str:
        """Return where a redirect leads, or why it is not followed."""
        downloads = self.services.downloads
        try:
            following = target.join(as_sent(reply.location or ""))
        except InvalidURL as error:
            return f"{Reason.REDIRECT_INVALID.value}: {error}"
        scheme = following.origin.scheme
        if not reply.location:
            return Reason.REDIRECT_WITHOUT_TARGET.value
        if scheme not in downloads.transports:
            return f"{Reason.REDIRECT_SCHEME.value}: {scheme}:"
        if downgrades(target, following) and not downloads.fetching.allow_downgrade:
            return Reason.REDIRECT_DOWNGRADE.value
        if following.url in visited:
            return Reason.REDIRECT_LOOP.value
        if len(visited) > (most := self.policy.max_redirects):
            return f"more than {type(self.policy).__name__}.max_redirects={most} redirects"
        return following


_SCHEMES = frozenset({"http", "https"})
_GZIP = b"\x1f\x8b"


async def fetch_tdm_file(services: Services, origin: Origin) -> TdmFile:
    """Fetch and read the file. Raises what waiting for a permit raises, except for Disallowed."""
    if origin.scheme not in _SCHEMES:
        return TdmFile(problem=f"{origin.scheme}: has no well-known files")
    body = bytearray()

    async def take(octets: bytes) -> None:
        body.extend(octets[: TDM_LIMIT + 1 - len(body)])

    # One octet more tells a file that is too large.
    fetch = FileFetch(services, take, services.downloads.fetching, TDM_LIMIT + 1)
    fetched = await fetch.run(Target(origin, TDM_PATH))
    if fetched.problem is None:
        return parse_tdm_file(_decoded(bytes(body)))
    # A site that does not give access to it does not use the protocol (6.2). What may pass is no such answer.
    status = fetched.status or 0
    is_answer = fetched.disallowed or (300 <= status < 500 and status != 429)
    return TdmFile(problem=fetched.problem) if is_answer else reserved_whole(fetched.problem)


def _decoded(body: bytes) -> bytes:
    """Return a body that may be in gzip, as far as it can be decoded and counts."""
    if not body.startswith(_GZIP):
        return body
    try:
        return zlib.decompressobj(wbits=31).decompress(body, TDM_LIMIT + 1)
    except zlib.error:
        # What it stands for cannot be told, as of JSON that is cut short.
        return b"["


_USUAL = "/sitemap.xml"


@dataclass(eq=False, repr=False)
class Sitemaps:
    """The entries of a site's sitemaps. Made by `Gate.sitemaps`; iterating again fetches again.

    Each file is fetched whole before its first entry is yielded, so no permit is held while the caller is slow: 1 MiB of a file
    is kept in memory, and the rest in a temporary file.

    Attributes:
        files: What became of each file that was fetched so far, in order. A file counts once its last entry was yielded.

    Example:
        sitemaps = gate.sitemaps("https://example.com")
        async for entry in sitemaps:
            print(entry.url, entry.lastmod)
        for file in sitemaps.files:
            print(file.url, file.entries, file.problem)
    """

    files: list[SitemapFile] = field(default_factory=list, init=False)
    _services: Services
    _origin: Origin
    _given: Sequence[Target] | None
    _since: datetime | None
    _policy: SitemapPolicy

    async def __aiter__(self) -> AsyncGenerator[SitemapEntry, None]:
        """Yield entries.

        A file that cannot be read, or not to its end, is told in `files` and ends nothing else.

        Raises:
            RobotsUnreachable: The robots.txt of the site, which names its sitemaps, could not be fetched.
            GateClosed, Overloaded, PermitMisused: As `Gate.permit`.
        """
        self.files = []
        first = await self._named() if self._given is None else self._given
        queue = deque((target, 0) for target in dict.fromkeys(first))
        seen = {target.url for target, _ in queue}
        while queue:
            file = _File(self._services, _site(self._origin), self._policy, *queue.popleft())
            async with aclosing(file.read()) as found:
                async for each in found:
                    if self._since is not None and not each.changed_since(self._since):
                        continue
                    if isinstance(each, SitemapEntry):
                        yield each
                    elif each.url not in seen and (
                        target := file.child(each, full=len(seen) >= self._policy.max_files)
                    ):
                        seen.add(each.url)
                        queue.append((target, file.depth + 1))
            self.files.append(file.outcome())

    async def _named(self) -> list[Target]:
        """Return the sitemaps that robots.txt names, or the usual one."""
        usual = Target(self._origin, _USUAL)
        services = self._services
        services.require_open(usual)
        known = services.origins.current(self._origin) or await services.learn(usual)
        if isinstance(known.rules.access, Unreachable):
            raise services.refusal(usual, known, known.rules.decide(usual.path))
        robots = await parsed(known, lambda robots: robots.sitemaps)
        named = []
        for url in () if robots is None else robots.sitemaps:
            with suppress(InvalidURL):
                target = Target.of(url)
                if target.origin.scheme in services.downloads.transports:
                    named.append(target)
        return named[: self._policy.max_files] or [usual]


@dataclass(eq=False, repr=False)
class _File:
    """One file of a walk: what it names, and what becomes of it.

    Attributes:
        depth: How many indexes led to it.
    """

    _services: Services
    _site: str
    _policy: SitemapPolicy
    _target: Target
    depth: int
    _parser: SitemapParser | None = None
    _skipped: int = 0
    _problem: str | None = None

    def __post_init__(self) -> None:
        self._fetched = Fetched(self._target)
        # The hosts of sitemaps that it may name: the site's, and its own, which robots.txt has named or redirected to.
        self._hosts = {self._site, _site(self._target.origin)}

    async def read(self) -> AsyncGenerator[SitemapEntry | SitemapLink, None]:
        """Fetch the file, and then yield what it names."""
        with closing(Spool()) as spool:
            policy = self._policy
            fetch = FileFetch(self._services, spool.write, policy, policy.max_bytes)
            self._fetched = fetched = await fetch.run(self._target)
            if fetched.problem is not None:
                return
            self._hosts.add(_site(fetched.target.origin))
            self._parser = parser = SitemapParser(fetched.target.url, policy)
            async with aclosing(spool.pieces()) as pieces:
                async for piece in pieces:
                    for found in parser.feed(piece):
                        for each in filter(self._counts, found):
                            yield each
                        # A piece takes some milliseconds.
                        await asyncio.sleep(0)
                    if parser.ended:
                        break
            for each in filter(self._counts, parser.close(cut_short=fetched.cut_short or fetched.too_long)):
                yield each

    def child(self, link: SitemapLink, *, full: bool) -> Target | None:
        """Return a sitemap that it names, to be fetched, unless a limit is reached or its host is another one."""
        target = Target.of(link.url)
        if _site(target.origin) not in self._hosts:
            self._skipped += 1
        elif self.depth >= self._policy.max_depth:
            self._problem = f"indexes are nested deeper than SitemapPolicy.max_depth={self._policy.max_depth}"
        elif full:
            self._problem = f"more than SitemapPolicy.max_files={self._policy.max_files} files"
        else:
            return target
        return None

    def outcome(self) -> SitemapFile:
        """Return what became of it."""
        fetched, parser = self._fetched, self._parser
        url = self._target.url
        if parser is None:
            return SitemapFile(
                url, problem=fetched.problem, status=fetched.status, disallowed=fetched.disallowed
            )
        problem = parser.problem
        if fetched.too_long and problem is not None:
            problem = f"more than SitemapPolicy.max_bytes={self._policy.max_bytes} octets"
        skipped = parser.skipped + self._skipped
        problem = problem or self._problem
        return SitemapFile(url, parser.kind, parser.entries, skipped, problem, fetched.status)

    def _counts(self, found: SitemapEntry | SitemapLink) -> bool:
        """Whether an entry is a URL of the site. Links are checked by `child`."""
        if isinstance(found, SitemapLink) or self._policy.other_hosts:
            return True
        counts = _site(Target.of(found.url).origin) == self._site
        self._skipped += not counts
        return counts


def _site(origin: Origin) -> str:
    """Return the host without `www.`: a site's robots.txt often redirects to the other one, with or without it."""
    return origin.host.removeprefix("www.")


async def parsed(known: OriginRules, read: Callable[[Robots], object]) -> Robots | None:
    """Return the file of the origin, or None if it has none. Of a large one, `read` reads in a thread what the caller needs."""
    if known.file is None:
        return None
    robots = parse(known.file.body, dialect=known.rules.dialect)
    if known.file.length > PARSE_SIZE_FOR_THREAD:
        await asyncio.to_thread(read, robots)
    return robots
