"""`polite sitemaps`: print the URLs that a site's sitemaps name."""

import argparse
import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict, replace

from polite.cli.options import FEW, agent_needed, is_unnamed, open_gate_for
from polite.cli.terminal import Exit, complain, spelled
from polite.errors import InvalidOption
from polite.origin import Target
from polite.robots.decision import RobotsUnreachable
from polite.sitemaps.entry import SitemapEntry, SitemapPolicy


def sitemaps(options: argparse.Namespace) -> Exit:
    """Print the entries. Return 1 if a file is disallowed, 3 if one could not be read, or not to its end. Raises InvalidOption."""
    if options.others:
        raise InvalidOption(
            f"sitemaps lists one site at a time, got {1 + len(options.others)} URLs; run it once for each"
        )
    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> Exit:
    unnamed = is_unnamed(options)
    policy = SitemapPolicy(timeout=options.timeout)
    if unnamed:
        policy = replace(policy, max_files=FEW + 1)
    async with open_gate_for(options) as gate:
        files = None if Target.of(options.url).path == "/" else [options.url]
        found = gate.sitemaps(options.url, files=files, since=options.since, policy=policy)
        try:
            async with aclosing(aiter(found)) as entries:
                printed = 0
                async for entry in entries:
                    print(json.dumps(_object(entry)) if options.json else entry.url, flush=True)
                    printed += 1
                    if printed == options.limit:
                        break
        except RobotsUnreachable as error:
            complain(spelled(f"{error.url}: {error.decision}"))
            return Exit.UNREACHABLE
    for file in found.files:
        if file.problem is not None:
            complain(spelled(f"{file.url}: {file.problem}"))
    if unnamed and len(found.files) > FEW:
        raise agent_needed(f"not all URLs are listed: polite sitemaps of more than {FEW} files")
    if any(file.problem is not None and not file.disallowed for file in found.files):
        return Exit.UNREACHABLE
    return Exit.DISALLOWED if any(file.disallowed for file in found.files) else Exit.ALLOWED


def _object(entry: SitemapEntry) -> dict[str, object]:
    return {
        "url": entry.url,
        "lastmod": None if entry.lastmod is None else entry.lastmod.isoformat(),
        "priority": entry.priority,
        "changefreq": None if entry.changefreq is None else entry.changefreq.value,
        "alternates": [asdict(each) for each in entry.alternates],
        "sitemap": entry.sitemap,
    }
