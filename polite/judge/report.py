"""What the judge says of a crawl of the practice sites, as a table and as JSON."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from polite.judge.sites import Host, judge_hosts
from polite.judge.verdict import Cause, Request, Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on a whole crawl.

    Attributes:
        verdicts: the verdict on each site.
        requests: the number of all requests.
        agents: how many requests each User-Agent header sent.
        seconds: the time from the first request to the last.
        efficiency: the shortest time that the sites permit for these requests, over the time taken: 1.0 is as fast as is
            polite, and more is impolite. Sites without pages do not count: how long a crawler waits for their robots.txt
            says nothing of its pace. None for fewer than two requests of a site.
    """

    verdicts: Mapping[Host, Verdict]
    requests: int
    agents: Counter[str]
    seconds: float
    efficiency: float | None

    @classmethod
    def of(
        cls, hosts: Iterable[Host], requests: Iterable[Request], delay_s: float, tolerance_s: float
    ) -> "Report":
        """Judge a log.

        Args:
            hosts: The sites that were served.
            requests: The log, in any order.
            delay_s: The delay that the crawler was given, in seconds.
            tolerance_s: A gap may be shorter by this, in seconds.
        """
        seen = sorted(requests, key=lambda request: request.at)
        verdicts = judge_hosts(hosts, seen, delay_s, tolerance_s=tolerance_s)
        seconds = seen[-1].at - seen[0].at if seen else 0.0
        paced = [each for host, each in verdicts.items() if host.pages and each.requests]
        least_s = max((each.least_s for each in paced), default=0.0)
        first_s = min((each.requests[0].at for each in paced), default=0.0)
        taken_s = max((each.requests[-1].at for each in paced), default=0.0) - first_s
        agents = Counter(request.agent for request in seen)
        return cls(verdicts, len(seen), agents, seconds, least_s / taken_s if least_s and taken_s else None)

    @property
    def polite(self) -> bool:
        """Whether requests came, and none was impolite."""
        return self.requests > 0 and not any(each.offences for each in self.verdicts.values())

    def counts(self) -> dict[str, int]:
        """Return the number of offences of each kind, and of pages that were not fetched."""
        found = [counts(each) for each in self.verdicts.values() if each.requests]
        return {kind: sum(each[kind] for each in found) for kind in _LABELS}

    def lines(self, addresses: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines of the table: a row for each site, the sums, and some offences in words.

        Args:
            addresses: What to call each host.
        """
        rows = [("site", "special", "requests", "robots.txt", "not fetched", "impolite")]
        visited = {host: each for host, each in self.verdicts.items() if each.requests}
        for host, each in visited.items():
            impolite = [
                f"{number} {_label(kind, number)}"
                for kind, number in counts(each).items()
                if number and kind not in _INFORMATION
            ]
            rows.append(
                (
                    addresses[host.name],
                    host.note,
                    str(len(each.requests)),
                    str(each.robots),
                    str(len(each.missing)),
                    ", ".join(impolite) or "-",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (
                f"{cell:>{width}}" if 2 <= at <= 4 else f"{cell:{width}}"
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            yield "  ".join(cells).rstrip()
        if len(visited) < len(self.verdicts):
            yield f"no request came to {len(self.verdicts) - len(visited)} of {len(self.verdicts)} sites"
        yield ""
        totals = {_LABELS[kind]: str(number) for kind, number in self.counts().items()}
        totals["requests"] = f"{self.requests} in {self.seconds:.1f} s"
        totals["efficiency"] = "-" if self.efficiency is None else f"{self.efficiency:.3f}"
        for name, value in totals.items():
            yield f"{name:34} {value}"
        for agent, number in self.agents.most_common(10):
            yield f"{'agent':34} {agent or '(none)'}: {number}"
        yield ""
        offences = [
            (addresses[host.name], offence)
            for host, each in self.verdicts.items()
            for offence in each.offences
        ]
        for site, offence in offences[:_SHOWN]:
            yield f"impolite: {site}: {offence}"
        if len(offences) > _SHOWN:
            yield f"impolite: {len(offences) - _SHOWN} more; --json has all"
        yield "polite" if self.polite else "impolite" if self.requests else "no request came"

    def as_json(self, addresses: Mapping[str, str]) -> str:
        """Return one JSON object, with all offences in words.

        Args:
            addresses: What to call each host.
        """
        sites = [
            {
                "site": addresses[host.name],
                "special": host.note,
                "requests": len(each.requests),
                "robots": each.robots,
                "shortest_gap_s": round(min(each.gaps), 6) if each.gaps else None,
                **counts(each),
                "offences": each.offences,
                "not_fetched": each.missing,
            }
            for host, each in self.verdicts.items()
        ]
        found: dict[str, Any] = {
            "polite": self.polite,
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "efficiency": None if self.efficiency is None else round(self.efficiency, 3),
            **self.counts(),
            "agents": dict(self.agents),
            "sites": sites,
        }
        return json.dumps(found)


# Offences that the table has in words.
_SHOWN = 10
# What is no offence.
_INFORMATION = {"refused_again", "missing"}
_LABELS = {
    "short_gaps": "short gaps",
    "after_redirect": "too early after a redirect",
    "within_retry_after": "within a Retry-After",
    "before_robots": "pages before robots.txt",
    "disallowed": "disallowed pages",
    "despite_5xx": "pages despite a robots.txt of 5xx",
    "refused_again": "429s after a 429",
    "robots_again": "robots.txt again",
    "missing": "allowed pages not fetched",
}


def _label(kind: str, number: int) -> str:
    return (
        re.sub(r"^(short gap|page|disallowed page|429)s", r"\1", _LABELS[kind])
        if number == 1
        else _LABELS[kind]
    )


def counts(verdict: Verdict) -> dict[str, int]:
    """Return the number of offences of each kind, and of allowed pages that were not fetched."""
    causes = Counter(each.cause for each in verdict.too_early)
    return {
        "short_gaps": causes[Cause.GAP],
        "after_redirect": causes[Cause.REDIRECT],
        "within_retry_after": causes[Cause.RETRY_AFTER],
        "before_robots": len(verdict.before_robots),
        "disallowed": len(verdict.disallowed),
        "despite_5xx": len(verdict.despite_error),
        "refused_again": verdict.refused_again,
        "robots_again": len(verdict.robots_again),
        "missing": len(verdict.missing),
    }


def written(request: Request) -> str:
    """Return a line of a log."""
    return json.dumps(asdict(request))


def read(line: str) -> Request:
    """Return a request from a line of a log. Raises ValueError."""
    names = ", ".join(field.name for field in fields(Request))
    try:
        found = json.loads(line)
        at, host, path = float(found["at"]), found["host"], found["path"]
        status, agent = int(found.get("status", 200)), found.get("agent", "")
        retry_after_s, took_s = float(found.get("retry_after_s", 0)), float(found.get("took_s", 0))
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"it is no JSON object with {names}: {line[:100]!r}") from error
    texts = all(isinstance(each, str) for each in (host, path, agent))
    if (
        not texts
        or not all(map(math.isfinite, (at, retry_after_s, took_s)))
        or min(retry_after_s, took_s) < 0
    ):
        raise ValueError(f"it is no JSON object with {names}: {line[:100]!r}")
    return Request(at, host, path, status, agent, retry_after_s, took_s)
