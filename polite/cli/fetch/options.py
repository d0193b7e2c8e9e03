"""The options of `polite fetch`."""

import argparse
import re
from collections.abc import Iterable
from functools import partial
from typing import get_args

from polite.cli.options import FEW, add_network, add_number, duration, typed, whole
from polite.errors import InvalidOption
from polite.options import number
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import REFUSALS, LongDelay
from polite.robots.policy import MOST_BYTES, MOST_REDIRECTS

# RFC 9110, 5.6.2 and 5.5: a token; visible characters, spaces and tabs. Octets that are not ASCII have no known encoding.
_FIELD = re.compile(
    r"(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}):[ \t]*(?P<value>[\x21-\x7e](?:[\t\x20-\x7e]{0,8190}[\x21-\x7e])?)[ \t]*"
)
# Fields that polite or its HTTP client sets, with the option that changes each.
_OURS = {
    "user-agent": "use --agent, whose name also selects the rules of robots.txt",
    **dict.fromkeys(("signature", "signature-agent", "signature-input"), "use --sign"),
    "if-none-match": "use --recrawl",
    "if-modified-since": "use --recrawl",
    "accept-encoding": "bodies are requested in gzip, and decoded",
    "host": "it is the URL's; --resolve names its address",
    **dict.fromkeys(
        ("connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
         "upgrade"),
        "it describes the message itself",
    ),
}  # fmt: skip
# What a site may not learn from another one's redirect, and what is written nowhere.
SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


def header(text: str) -> tuple[str, str]:
    """Return name and value of `NAME: VALUE`. Raises InvalidOption, whose message does not show the value."""
    found = _FIELD.fullmatch(text)
    if found is None:
        # Without a colon, what follows the first word may be a secret.
        name = re.split(r"[^A-Za-z-]", text, maxsplit=1)[0][:100]
        raise InvalidOption(
            f"--header must be 'NAME: VALUE' in ASCII without control characters, of at most 8192 octets, got {name!r}"
        )
    name = found["name"]
    if (why := _OURS.get(name.lower())) is not None:
        raise InvalidOption(f"--header cannot set {name}: {why}")
    return name, found["value"]


def merged(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name. Of two with one name the last counts: so a command line overrules its configuration."""
    kept: dict[str, tuple[str, str]] = {}
    for name, value in fields:
        kept[name.lower()] = name, value
    return dict(kept.values())


# Switches that a queue keeps, each with a hidden `--no-` form.
SWITCHED_OFF = ("allow-private", "signature-agent-as-string")
# The greatest budget of an origin.
_MOST_SPENT = 10**15
# A week.
_MOST_OUTAGE_S = 604_800.0


def add_fetch_options(fetch: argparse.ArgumentParser) -> None:
    """Add all options of `polite fetch`."""
    _add_inputs(fetch)
    _add_outputs(fetch)
    _add_limits(fetch)
    _add_budgets(fetch)
    _add_signature(fetch)
    timeout = "limit for one page, and for one robots.txt with its redirects"
    add_network(fetch, timeout=timeout, few=f"{FEW} URLs, and for --store")
    for name in SWITCHED_OFF:
        fetch.add_argument(
            f"--no-{name}",
            action="store_false",
            dest=name.replace("-", "_"),
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


def pacing_of(options: argparse.Namespace) -> PacingPolicy:
    """Return the pacing policy of the options."""
    return PacingPolicy(
        min_delay=options.delay,
        on_long_delay=options.long_delay,
        backoff_statuses=REFUSALS | frozenset(options.back_off_on or ()),
        max_pages=options.max_pages,
        max_bytes=options.max_origin_bytes,
        max_failures=options.max_failures,
    )


def has_urls(options: argparse.Namespace) -> bool:
    """Whether URLs were given, by argument or by list."""
    return bool(options.urls or options.list)


def _add_inputs(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument(
        "--config",
        metavar="FILE",
        help="a TOML file with options in a table [fetch]; the command line and POLITE_AGENT and POLITE_DELAY overrule it "
        "(default: POLITE_CONFIG)",
    )
    fetch.add_argument(
        "--list",
        action="append",
        metavar="FILE",
        help="read URLs from FILE, one per line; lines that start with # are comments; may be repeated",
    )
    add_number(
        fetch, "--limit", "limit on new URLs of the list; the rest of it is not read", most=1_000_000_000
    )
    fetch.add_argument(
        "--header",
        action="append",
        type=typed(header),
        metavar="NAME:VALUE",
        help="a field to send with each page request, but not for robots.txt; may be repeated",
    )


def _add_outputs(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument(
        "--output",
        metavar="DIR",
        help="write records to DIR/records.jsonl instead of standard output, and bodies to DIR/bodies",
    )
    fetch.add_argument(
        "--warc",
        metavar="FILE",
        help="write bodies to a WARC file; its name must end in .warc.gz (needs polite-crawl[warc])",
    )
    fetch.add_argument(
        "--resume",
        metavar="FILE",
        help="keep the queue in FILE, and continue with the URLs that an earlier run left there",
    )
    fetch.add_argument(
        "--retry",
        choices=("failed", "given-up", "all"),
        metavar="WHICH",
        help="with --resume: try again URLs that earlier runs did not fetch: those that failed, given-up ones, or all",
    )
    fetch.add_argument(
        "--change",
        action="store_true",
        help="with --resume: go on with other options than the queue keeps, such as another --agent or --delay",
    )
    fetch.add_argument(
        "--recrawl",
        metavar="FILE",
        help="keep ETag and Last-Modified of pages in FILE, and request pages that an earlier run fetched only if they changed",
    )
    fetch.add_argument(
        "--store",
        metavar="URL",
        help="share queue, delays and robots.txt with other machines on a Redis or Valkey server (redis://host/0; needs "
        "polite-crawl[redis]); POLITE_STORE_USER and POLITE_STORE_PASSWORD are for a URL without credentials",
    )
    fetch.add_argument("--crawl", metavar="NAME", help="the crawl in --store to join or to begin")
    fetch.add_argument(
        "--log", metavar="FILE", help="write each request, refusal and back-off to FILE, for polite timeline"
    )
    add_number(
        fetch,
        "--status",
        "serve a live status page of the run at http://127.0.0.1:PORT/; 0 for a port that is free",
        least=0,
        most=65_535,
        metavar="PORT",
    )
    fetch.add_argument("--quiet", action="store_true", help="print no progress")


def _add_limits(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument(
        "--delay",
        type=typed(
            lambda text: duration("--delay", text, lambda value: PacingPolicy(min_delay=value).min_delay)
        ),
        default="1",
        metavar="SECONDS",
        help="least delay between two requests to one origin; its robots.txt may ask for more (default: %(default)s)",
    )
    add_number(
        fetch,
        "--concurrency",
        "limit on requests in flight, each to a different origin (default: %(default)s)",
        most=10_000,
        default="32",
    )
    add_number(
        fetch,
        "--max-bytes",
        "limit for one page, as sent and decoded; the rest is not read (default: %(default)s)",
        most=MOST_BYTES,
        default="5000000",
        metavar="OCTETS",
    )
    add_number(
        fetch,
        "--max-redirects",
        "limit on redirects in a row; each waits for its own turn (default: %(default)s)",
        least=0,
        most=MOST_REDIRECTS,
        default="5",
    )
    add_number(
        fetch,
        "--tries",
        "limit on attempts for one page, and for one robots.txt (default: %(default)s)",
        most=100,
        default="3",
    )
    fetch.add_argument(
        "--max-outage",
        type=typed(
            lambda text: duration("--max-outage", text, partial(number, "--max-outage", most=_MOST_OUTAGE_S))
        ),
        default="600",
        metavar="SECONDS",
        help="how long a site may be out of reach before its URLs are given up; until then, attempts without a connection do "
        "not count for --tries (default: %(default)s)",
    )


def _add_budgets(fetch: argparse.ArgumentParser) -> None:
    for option, metavar, text in (
        ("--max-pages", "NUMBER", "limit on pages of one origin; then its other URLs are dropped"),
        (
            "--max-origin-bytes",
            "OCTETS",
            "limit on octets of one origin's pages, as sent; then its other URLs are dropped",
        ),
        (
            "--max-failures",
            "NUMBER",
            "limit on failures of one origin in a row; then its other URLs are dropped",
        ),
    ):
        add_number(fetch, option, text, most=_MOST_SPENT, metavar=metavar)
    fetch.add_argument(
        "--long-delay",
        choices=get_args(LongDelay),
        metavar="RULE",
        default="cap",
        help="what to do about a Crawl-delay of more than 300 s: cap it to 300 s (default), obey it, or refuse the origin's URLs",
    )
    fetch.add_argument(
        "--back-off-on",
        action="append",
        type=typed(_refusal),
        metavar="STATUS",
        help="a status that backs the origin off, besides 429 and 503: 403 or 500, say; may be repeated",
    )


def _refusal(text: str) -> int:
    status = whole("--back-off-on", text, least=400, most=599)
    PacingPolicy(backoff_statuses={status})
    return status


def _add_signature(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument(
        "--sign",
        metavar="KEY",
        help="sign requests over https with the Ed25519 key in KEY (Web Bot Auth; needs polite-crawl[sign])",
    )
    fetch.add_argument(
        "--signature-agent",
        metavar="URL",
        help="where servers find the public key of --sign; polite card writes the files for it",
    )
    fetch.add_argument(
        "--signature-agent-as-string",
        action="store_true",
        help="send --signature-agent in the older form, the only one that Cloudflare verifies (July 2026)",
    )
