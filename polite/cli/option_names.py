"""Translates the library's option names in messages to command-line options or plain words."""

import re

# The command-line option of a policy's field, or what the field is in plain words.
OPTION_NAMES = {
    "SitemapPolicy.max_bytes": "the limit of",
    "SitemapPolicy.max_entries": "the limit of",
    "SitemapPolicy.max_files": "the limit of",
    "SitemapPolicy.max_depth": "the limit of",
    "SitemapPolicy.max_redirects": "the limit of",
    "SitemapPolicy.timeout": "--timeout",
    "SitemapPolicy.other_hosts": "the rule for URLs of other hosts",
    "FetchPolicy.timeout": "--timeout",
    "FetchPolicy.max_redirects": "the limit on redirects of robots.txt",
    "FetchPolicy.max_bytes": "the size limit of robots.txt",
    "FetchPolicy.allow_private": "--allow-private",
    "FetchPolicy.allowed_networks": "the list of allowed networks",
    "FetchPolicy.denied_networks": "the list of denied networks",
    "FetchPolicy.nameservers": "the list of nameservers",
    "FetchPolicy.connections": "the limit on robots.txt fetches in flight",
    "FetchPolicy.allow_downgrade": "the rule for redirects from https to http",
    "FetchPolicy.first_location": "the rule for several Location fields",
    "FetchPolicy.transfer_codings": "the list of supported transfer codings",
    "FetchPolicy.junk_after_gzip": "the rule for octets after a gzip stream",
    "FetchPolicy.ca_file": "the list of trusted authorities",
    "FetchPolicy.proxy": "the proxy",
    "RobotsPolicy.dialect": "--dialect",
    "RobotsPolicy.denied_statuses": "the list of statuses that deny all",
    "RobotsPolicy.allowed_statuses": "the list of statuses that allow all",
    "RobotsPolicy.retry_once_statuses": "the list of statuses that are retried once",
    "RobotsPolicy.deny_bad_redirects": "the rule for invalid redirects",
    "RobotsPolicy.infer_missing": "the check for a missing robots.txt",
    "RobotsPolicy.default_ttl": "the default lifetime of robots.txt",
    "RobotsPolicy.min_ttl": "the least lifetime of robots.txt",
    "RobotsPolicy.max_ttl": "the greatest lifetime of robots.txt",
    "RobotsPolicy.refresh_ahead": "the early refresh of robots.txt",
    "RobotsPolicy.keep_stale": "the rule for expired copies of robots.txt",
    "RobotsPolicy.unreachable_limit": "the limit on the time that robots.txt is unreachable",
    "RobotsPolicy.retry_min": "the least delay before a retry of robots.txt",
    "RobotsPolicy.retry_max": "the greatest delay before a retry of robots.txt",
    "RobotsPolicy.busy_retry_max": "the greatest delay before a retry after 503",
    "RobotsPolicy.nxdomain_retry": "the delay before a retry of an unknown name",
    "RobotsPolicy.max_retry_after": "the limit on Retry-After",
    "RobotsPolicy.max_origins": "the limit on remembered origins",
    "RobotsPolicy.max_memory": "the limit on memory for rules",
    "PacingPolicy.min_delay": "--delay",
    "PacingPolicy.max_crawl_delay": "the limit on Crawl-delay",
    "PacingPolicy.jitter": "the random part of the delay",
    "PacingPolicy.concurrency": "the limit on requests in flight to one origin",
    "PacingPolicy.scopes": "the choice of scopes",
    "PacingPolicy.anchor": "the start of the delay",
    "PacingPolicy.max_retry_after": "the limit on Retry-After",
    "PacingPolicy.backoff": "the first back-off",
    "PacingPolicy.max_backoff": "the limit on back-offs",
    "PacingPolicy.latency_factor": "the latency factor",
    "PacingPolicy.max_latency_delay": "the limit on the delay for slow responses",
    "PacingPolicy.max_rate_limit_delay": "the limit on delays by RateLimit",
    "PacingPolicy.backoff_statuses": "--back-off-on",
    "PacingPolicy.on_long_delay": "--long-delay",
    "PacingPolicy.obey_visit_time": "the rule for Visit-time",
    "PacingPolicy.may_undercut_site": "the permission of a throttle",
    "PacingPolicy.circuit_failures": "the limit on failures in a row",
    "PacingPolicy.circuit_rest": "the delay after repeated failures",
    "PacingPolicy.max_pages": "--max-pages",
    "PacingPolicy.max_bytes": "--max-origin-bytes",
    "PacingPolicy.max_failures": "--max-failures",
    "PacingPolicy.max_hold": "the limit on the duration of a request",
    "PacingPolicy.max_waiting": "the limit on waiting requests",
    "PacingPolicy.home": "what one process of a shared crawl paces alone",
    "PacingPolicy.overrides": "the policies of single origins",
    "open_gate(signer=...)": "--sign",
}

_NO_OPTION = "no command-line option"
# Longer texts first: a shorter one may be part of them.
_PHRASES = {
    " blocked; only FetchPolicy.allowed_networks can permit": " blocked and never fetched: no option permits",
    "FetchPolicy.allow_private or allowed_networks": "--allow-private",
    "open_gate(transports=...)": _NO_OPTION,
    "open_gate(signer=...)": OPTION_NAMES["open_gate(signer=...)"],
    "WebBotAuth: signature_agent": "--signature-agent",
    "crawl must be a name": "--crawl must be a name",
    "SqliteStore(max_bytes=...)": "the size limit of the store",
}
_FIELD = r"(?:FetchPolicy|RobotsPolicy|PacingPolicy|SitemapPolicy)\.\w+"
# As checks of options name a field: "PacingPolicy: min_delay must be ...".
_CHECKED = re.compile(r"\b((?:Fetch|Robots|Pacing|Sitemap)Policy): (?=[a-z_]+ )")
_CHANGES = re.compile(rf"({_FIELD})(?= changes it)")
_VALUE = re.compile(rf"({_FIELD})(=?)")
_LEAST_DELAY = "the least delay"
# Fields that messages name without their policy. Not within a URL, which may hold any word.
_BARE_NAMES = {
    name.partition(".")[2]: phrase for name, phrase in OPTION_NAMES.items() if "_" in name.partition(".")[2]
} | {"min_delay": _LEAST_DELAY}
_BARE = re.compile(rf"(?<![^\s(;,])({'|'.join(_BARE_NAMES)})(?=[\s=]|$)")
_TRIES = re.compile(r"(?<![^\s(])max_tries=\d+")
_QUEUE_LIMIT = re.compile(r"Frontier\.max_waiting\b")


def option_of(field: str) -> str | None:
    """Return the command-line option of a policy's field such as "FetchPolicy.timeout", or None."""
    name = OPTION_NAMES.get(field, "")
    return name if name.startswith("--") else None


def command_line_text(text: str) -> str:
    """Return a message of the library in terms of the command line."""
    for phrase, plain in _PHRASES.items():
        text = text.replace(phrase, plain)
    text = _CHECKED.sub(r"\1.", text)
    text = _CHANGES.sub(lambda found: option_of(found[1]) or _NO_OPTION, text)
    text = _VALUE.sub(_name_and_sign, text)
    text = _TRIES.sub("too many attempts (--tries)", text)
    text = _QUEUE_LIMIT.sub("the limit on waiting URLs", text)
    return _BARE.sub(lambda found: _BARE_NAMES[found[1]], text)


def fetch_text(text: str) -> str:
    """Return a message of the library in terms of `polite fetch`, which has an option for the least delay."""
    return command_line_text(text).replace(_LEAST_DELAY, "--delay")


def _name_and_sign(found: re.Match[str]) -> str:
    """Keep `=` after an option; after plain words it becomes a space."""
    name = OPTION_NAMES.get(found[1], found[1])
    return name + (found[2] if name.startswith("--") else found[2].replace("=", " "))
