"""All ratios, by name: what is measured, beside what, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import memory, url
from benchmarks.corpus import Case
from benchmarks.peers import GOOGLE
from benchmarks.ratios import measures
from benchmarks.ratios.figures import Figures


@dataclass(frozen=True, slots=True)
class Ratio:
    """One ratio.

    Attributes:
        name: its key in benchmarks/history.json, which does not change.
        what: what polite does, for the table.
        peer: what is measured beside it.
        unit: of both figures.
        measure: measures it, given robots.txt files.
        command: the benchmark that prints more about it.
        tracked: whether `--record` and `--check` measure it too.
    """

    name: str
    what: str
    peer: str
    unit: str
    measure: Callable[[list[Case]], Figures]
    command: str
    tracked: bool = True


_GOOGLE = "Google's C++ through Python, which parses the file on each call"
_NEW_GET = "one aiohttp GET on a new connection"
_URL = "robots.decide(agent, url)"

# fmt: off
_ALL = (
    Ratio("allows", "`allows`", "Protego", "us", partial(measures.decisions, "allows", 9), "decide"),
    Ratio("decide", "`decide`, with its rule and line", "Protego", "us",
          partial(measures.decisions, "decide with rule and line", 9), "decide"),
    Ratio("decide-url", f"`{_URL}`, with canonicalisation of the URL", "Protego", "us",
          partial(measures.decisions, _URL, 9), "decide"),
    Ratio("decide-url-google", "the same", _GOOGLE, "us",
          partial(measures.decisions, _URL, 3, peer=GOOGLE), "decide", tracked=False),
    Ratio("allows-1000-rules", "`allows`, 1,000 rules, 10 % with wildcards", "Protego", "us",
          partial(measures.large_file, 1_000, 0.1, 9), "decide", tracked=False),
    Ratio("allows-10000-rules", "`allows`, 10,000 rules, 10 % with wildcards", "Protego", "us",
          partial(measures.large_file, 10_000, 0.1, 5), "decide", tracked=False),
    Ratio("allows-10000-literals", "`allows`, 10,000 literal rules", "Protego", "us",
          partial(measures.large_file, 10_000, 0.0, 5), "decide", tracked=False),
    Ratio("worst-100", "the worst of ten hostile files of 500 KiB, a path of 100 characters", "Google's C++", "ms",
          partial(measures.slowest, long=False), "decide", tracked=False),
    Ratio("worst-2000", "the same, a path of 2,000 characters", "Protego", "ms",
          partial(measures.slowest, long=True), "decide", tracked=False),
    Ratio("parse", "parse and bind a file", "Protego", "us", partial(measures.parsing, "parse and bind", 9), "parse"),
    Ratio("parse-decide", "the same, and one decision", "Protego, without a decision", "us",
          partial(measures.parsing, "parse and bind, and one decision", 9), "parse", tracked=False),
    Ratio("memory-rules", "memory of a file's bound rules after decisions", "Protego", "octets",
          partial(measures.memory_of, memory.rules_decided), "memory"),
    Ratio("memory-file", "memory of a `Robots` with its octets", "Protego", "octets",
          partial(measures.memory_of, memory.file_decided), "memory"),
    Ratio("target", "a common URL becomes a target, 50 hosts", "`yarl.URL`", "us",
          partial(measures.urls, url.common, 50, 25), "url"),
    Ratio("target-new-host", "the same, each host new", "`yarl.URL`", "us",
          partial(measures.urls, url.common, 10**9, 25), "url"),
    Ratio("target-rewrite", "a URL that needs rewriting, 50 hosts", "`yarl.URL`", "us",
          partial(measures.urls, url.to_rewrite, 50, 25), "url"),
    Ratio("permit", "client CPU of a permit that does not wait", "one aiohttp GET on loopback", "us",
          partial(measures.permit, 15), "gate"),
    Ratio("robots-request", "client CPU of one robots.txt request", _NEW_GET, "us",
          partial(measures.robots, "HttpTransport.get", 10), "robots_fetch", tracked=False),
    Ratio("robots-check", "the same, as the first `gate.check` of an origin", _NEW_GET, "us",
          partial(measures.robots, "gate.check, new origin", 10), "robots_fetch", tracked=False),
    Ratio("pacing-1000", "one pacing decision, 1,000 origins", "`heapq.heapreplace`", "us",
          partial(measures.pacing, 1_000, 50_000, 9), "turnstile"),
    Ratio("pacing-1000000", "one pacing decision, 1,000,000 origins", "`heapq.heapreplace`", "us",
          partial(measures.pacing, 1_000_000, 300_000, 3), "turnstile", tracked=False),
    Ratio("task", "one task of a frontier, 1,000 origins, 100 workers", "`asyncio.PriorityQueue`", "us",
          partial(measures.tasks, 1_000, 10_000, 7), "frontier", tracked=False),
    Ratio("crawl", "one fetch of a crawl in virtual time, 100 hosts", "`asyncio.sleep`", "us",
          partial(measures.crawl, 100, 10_000, 7), "virtual", tracked=False),
    Ratio("save", "save a robots.txt result on disk, 500 callers at once", "aiosqlite", "us",
          partial(measures.saves, 5), "store", tracked=False),
)
# fmt: on
RATIOS = {each.name: each for each in _ALL}
TRACKED = [each.name for each in _ALL if each.tracked]
