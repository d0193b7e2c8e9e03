"""Files and URLs to measure with: real ones if the corpus is beside the project, else generated ones."""

import gzip
import json
import random
import tarfile
from pathlib import Path
from typing import NamedTuple

from polite.robots.agent import UserAgent

_REAL = Path(__file__).resolve().parents[1].parent / "shared" / "corpus"
_AGENTS = ("bingbot", "gptbot", "ahrefsbot", "mj-bot", "semrushbot", "yandex", "baiduspider", "applebot")
_FOLDERS = (
    "wp-admin",
    "cgi-bin",
    "search",
    "cart",
    "user",
    "login",
    "tmp",
    "print",
    "tag",
    "feed",
    "api",
    "img",
)
_WILD = (
    "/*?sort=",
    "/*.pdf$",
    "/*/feed/",
    "/*?*session=",
    "/*&print=1",
    "/search*/page/",
    "/*.php?id=",
    "/$",
)
HEADER = "ExampleBot/1.0 (+https://example.com/bot)"


class Case(NamedTuple):
    """One file, and the agents and paths to decide."""

    body: bytes
    decisions: list[tuple[UserAgent, str]]


def corpus() -> tuple[str, list[Case]]:
    """Return a description and the cases."""
    if _REAL.is_dir():
        cases = _real()
        return f"{len(cases):,} real files ({_REAL})", cases
    cases = made()
    return (
        f"NOT real: {len(cases):,} files made by benchmarks/corpus.py (the real corpus is not beside the project)",
        cases,
    )


def _real() -> list[Case]:
    with tarfile.open(_REAL / "bodies.tar.xz") as archive:
        members = {member.name.removesuffix(".txt"): archive.extractfile(member) for member in archive}
        bodies = {name: member.read() for name, member in members.items() if member is not None}
    with gzip.open(_REAL / "google_verdicts.jsonl.gz", "rt") as rows:
        verdicts = [json.loads(row) for row in rows]
    return [
        Case(bodies[name], [(UserAgent(agent, tokens=(agent,)), path) for agent, path, *_ in decisions])
        for name, decisions in verdicts
    ]


def made(files: int = 1_000, seed: int = 9309) -> list[Case]:
    """Return generated files: most have a few groups of a few dozen rules, some are HTML pages or long lists."""
    rng = random.Random(seed)
    return [_made(rng) for _ in range(files)]


def _made(rng: random.Random) -> Case:
    if rng.random() < 0.1:
        return Case(
            b"<!DOCTYPE html>\n" + b'<p class="x">text: more</p>\n' * rng.randrange(50, 2_000),
            _decisions(rng),
        )
    rows = []
    for agent in [*rng.sample(_AGENTS, rng.randrange(4)), "*"]:
        rows += ["", f"User-agent: {agent}"]
        rows += [_rule(rng) for _ in range(min(600, int(rng.lognormvariate(2.3, 1.2))))]
    return Case("\n".join([*rows, "Sitemap: https://example.com/sitemap.xml", ""]).encode(), _decisions(rng))


def _rule(rng: random.Random) -> str:
    path = rng.choice(_WILD) if rng.random() < 0.15 else f"/{rng.choice(_FOLDERS)}{rng.randrange(40)}/"
    return f"{'Allow' if rng.random() < 0.06 else 'Disallow'}: {path}"


def _decisions(rng: random.Random) -> list[tuple[UserAgent, str]]:
    agent = UserAgent(HEADER)
    tails = ("", "index.html", "list?sort=price", "a/b/c.pdf", "view.php?id=7")
    return [(agent, f"/{rng.choice(_FOLDERS)}{rng.randrange(60)}/{rng.choice(tails)}") for _ in range(12)]


def large(rules: int, *, wild: float, seed: int = 9309) -> Case:
    """Return one group of `rules` rules, a tenth Allow, the share `wild` with wildcards (half of them after the first slash)."""
    rng = random.Random(seed)
    rows = ["User-agent: *", *(_large_rule(rng, number, wild) for number in range(rules))]
    paths = [
        f"/section{rng.randrange(rules)}/{'item' if rng.random() < 0.7 else 'private'}{rng.randrange(99)}.html"
        + (f"?page={rng.randrange(9)}" if rng.random() < 0.3 else "")
        for _ in range(200)
    ]
    return Case("\n".join(rows).encode(), [(UserAgent(HEADER), path) for path in paths])


def _large_rule(rng: random.Random, number: int, wild: float) -> str:
    path = f"/section{number}/"
    if rng.random() < wild:
        path = rng.choice((f"{path}*.php", f"{path}*/print$", f"/*?session{number}=", f"/*/draft{number}$"))
    elif rng.random() < 0.5:
        path += "private"
    return f"{'Allow' if rng.random() < 0.1 else 'Disallow'}: {path}"
