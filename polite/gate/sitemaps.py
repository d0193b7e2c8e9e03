"""Sitemaps: the entries of a site, one file after another, each fetched in its turn."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import datetime

from polite.errors import InvalidURL
from polite.gate.file_fetch import Fetched, FileFetch, FileLimits
from polite.gate.origin_rules import OriginRules
from polite.gate.services import Services
from polite.gate.spool import Spool
from polite.origin import Origin, Target
from polite.robots.fetching.result import Found, Unreachable
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, Robots, parse
from polite.sitemaps.entry import SitemapEntry, SitemapFile, SitemapLink
from polite.sitemaps.parser import SitemapParser
from polite.sitemaps.policy import SitemapPolicy

_USUAL = "/sitemap.xml"


@dataclass(frozen=True, slots=True)
class _Queued:
    """A file to fetch. `depth`: how many indexes led to it."""

    target: Target
    depth: int = 0


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

    def __init__(
        self,
        services: Services,
        origin: Origin,
        *,
        files: Iterable[Target] | None,
        since: datetime | None,
        policy: SitemapPolicy,
    ) -> None:
        self.files: list[SitemapFile] = []
        self._services = services
        self._origin = origin
        self._given = None if files is None else tuple(files)
        self._since = since
        self._policy = policy

    def __aiter__(self) -> AsyncGenerator[SitemapEntry, None]:  # noqa: PYI058 - who breaks off may close it
        """Yield entries.

        A file that cannot be read, or not to its end, is told in `files` and ends nothing else.

        Raises:
            RobotsUnreachable: The robots.txt of the site, which names its sitemaps, could not be fetched.
            GateClosed, Overloaded, PermitMisused: As `Gate.permit`.
        """
        return self._entries()

    async def _entries(self) -> AsyncGenerator[SitemapEntry, None]:
        self.files = []
        first = await self._named() if self._given is None else self._given
        queue = deque(map(_Queued, dict.fromkeys(first)))
        seen = {each.target.url for each in queue}
        while queue:
            file = _File(self._services, self._origin, self._policy, queue.popleft())
            async with aclosing(file.read()) as found:
                async for each in found:
                    if self._since is not None and not each.changed_since(self._since):
                        continue
                    if isinstance(each, SitemapEntry):
                        yield each
                    elif each.url not in seen and (
                        follow := file.child(each, full=len(seen) >= self._policy.max_files)
                    ):
                        seen.add(each.url)
                        queue.append(follow)
            self.files.append(file.outcome())

    async def _named(self) -> list[Target]:
        """Return the sitemaps that robots.txt names, or the usual one."""
        usual = Target(self._origin, _USUAL)
        services = self._services
        services.require_open(usual)
        known = services.origins.current(self._origin) or await services.learn(usual)
        if isinstance(known.rules.access, Unreachable):
            raise services.refusal(usual, known)
        robots = await _robots(known)
        named = [] if robots is None else list(self._reachable(robots.sitemaps))
        return named[: self._policy.max_files] or [usual]

    def _reachable(self, urls: Iterable[str]) -> Iterator[Target]:
        for url in urls:
            try:
                target = Target.of(url)
            except InvalidURL:
                continue
            if target.origin.scheme in self._services.downloads.schemes:
                yield target


class _File:
    """One file of a walk: what it names, and what becomes of it."""

    def __init__(self, services: Services, origin: Origin, policy: SitemapPolicy, queued: _Queued) -> None:
        self._services = services
        self._policy = policy
        self._queued = queued
        self._fetched = Fetched(queued.target)
        self._parser: SitemapParser | None = None
        self._skipped = 0
        self._problem: str | None = None
        self._site = _site(origin)
        # The hosts of sitemaps that it may name: the site's, and its own, which robots.txt has named or redirected to.
        self._hosts = {self._site, _site(queued.target.origin)}

    async def read(self) -> AsyncGenerator[SitemapEntry | SitemapLink, None]:
        """Fetch the file, and then yield what it names."""
        with closing(Spool()) as spool:
            fetch = FileFetch(self._services, _limits(self._policy), spool.write)
            self._fetched = fetched = await fetch.run(self._queued.target)
            if fetched.problem is not None:
                return
            self._hosts.add(_site(fetched.target.origin))
            self._parser = parser = SitemapParser(fetched.target.url, self._policy)
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

    def child(self, link: SitemapLink, *, full: bool) -> _Queued | None:
        """Return a sitemap that it names, to be fetched, unless a limit is reached or its host is another one."""
        target = Target.of(link.url)
        if _site(target.origin) not in self._hosts:
            self._skipped += 1
        elif self._queued.depth >= self._policy.max_depth:
            self._problem = f"indexes are nested deeper than SitemapPolicy.max_depth={self._policy.max_depth}"
        elif full:
            self._problem = f"more than SitemapPolicy.max_files={self._policy.max_files} files"
        else:
            return _Queued(target, self._queued.depth + 1)
        return None

    def outcome(self) -> SitemapFile:
        """Return what became of it."""
        fetched, parser = self._fetched, self._parser
        url = self._queued.target.url
        if parser is None:
            return SitemapFile(
                url, problem=fetched.problem, status=fetched.status, disallowed=fetched.disallowed
            )
        problem = parser.problem
        if fetched.too_long and problem is not None:
            problem = f"more than SitemapPolicy.max_bytes={self._policy.max_bytes} octets"
        return SitemapFile(
            url,
            parser.kind,
            parser.entries,
            parser.skipped + self._skipped,
            problem or self._problem,
            fetched.status,
        )

    def _counts(self, found: SitemapEntry | SitemapLink) -> bool:
        """Whether an entry is a URL of the site. Links are checked by `child`."""
        if (
            isinstance(found, SitemapLink)
            or self._policy.other_hosts
            or _site(Target.of(found.url).origin) == self._site
        ):
            return True
        self._skipped += 1
        return False


def _limits(policy: SitemapPolicy) -> FileLimits:
    return FileLimits("SitemapPolicy", policy.max_bytes, policy.max_redirects, policy.timeout)


def _site(origin: Origin) -> str:
    """Return the host without `www.`: a site's robots.txt often redirects to the other one, with or without it."""
    return origin.host.removeprefix("www.")


async def _robots(known: OriginRules) -> Robots | None:
    """Return the file of the origin, or None if it has none."""
    results = (known.snapshot.access, known.snapshot.good)
    file = next((each for each in results if isinstance(each, Found)), None)
    if file is None:
        return None
    robots = parse(file.body, dialect=known.rules.dialect)
    if file.length > PARSE_SIZE_FOR_THREAD:
        # Reads its lines there.
        await asyncio.to_thread(lambda: robots.sitemaps)
    return robots
