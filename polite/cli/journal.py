"""`polite journal`: whether a journal of decisions is unchanged, and what was known and decided about a URL."""

import argparse
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from polite.cli.terminal import Exit, complain, counted, printable
from polite.errors import InvalidOption
from polite.gate.journal import FIRST, LONGEST_LINE, archives, dated
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.dialect import BY_NAME
from polite.robots.parse import parse

# Problems that are printed. There may be as many as lines.
_SHOWN = 20
_DIGEST = re.compile("[0-9a-f]{64}")
_DECIDED = ("granted", "refused", "declined")


class Line(NamedTuple):
    """A line of a journal: where it is, its hash, and what it says."""

    place: str
    hash: str
    told: dict[str, Any]


class Chain:
    """The lines of a journal, those of its rotated files first.

    Attributes:
        files: The files that are there, the oldest first.
        broken: How many lines and copies are not as they were written.
        missing: Whether its beginning is not there, or its last line is cut.
        last: The last line, once all were read.
    """

    def __init__(self, path: Path) -> None:
        rotated = archives(path)
        # A kill just after a rotation leaves no other.
        self.files: list[Path] = [*rotated, path] if path.exists() or not rotated else rotated
        self.broken: int = 0
        self.missing: bool = False
        self.last: Line = Line(str(path), FIRST, {})
        self._copies = Path(f"{path}.robots")
        self._checked: set[str] = set()

    def copy(self, digest: object) -> bytes | None:
        """Return the robots.txt of a digest; None for what is no digest, or if the copy is gone. Raises OSError."""
        if _DIGEST.fullmatch(str(digest)) is None or not (copy := self._copies / str(digest)).exists():
            return None
        return copy.read_bytes()

    def wrong(self, place: str, text: str) -> None:
        """Print that something was changed."""
        self.broken += 1
        if self.broken <= _SHOWN:
            complain(f"{place}: {text}")

    def lines(self) -> Iterator[Line]:
        """Yield each line that can be read, and print what is wrong with it. Raises OSError."""
        cut: tuple[str, str, int] | None = None
        for file in self.files:
            with file.open("rb") as stream:
                for number, octets in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), 1):
                    text, place = octets.rstrip(b"\n"), f"{file}:{number}"
                    line, at_end = Line(place, sha256(text).hexdigest(), _told(text)), text == octets
                    if at_end and file == self.files[-1] and self._begins(text):
                        self.missing = True
                        complain(f"{place}: the last line is cut, as by a kill")
                    elif not line.told or at_end:
                        # The next line says if a kill cut it.
                        cut = (place, line.hash, len(text))
                    else:
                        if cut is not None:
                            self._check_cut(line, cut)
                        else:
                            self._check(line)
                        cut, self.last = None, line
                        yield line
        if cut is not None:
            self.wrong(cut[0], "this is no line of a journal")

    def _check_cut(self, line: Line, cut: tuple[str, str, int]) -> None:
        """Check the line after one that a kill cut: it says what was there, and which whole line came before."""
        if (line.told["prev"], line.told.get("cut")) != cut[1:]:
            self.wrong(cut[0], "this is no line of a journal")
        elif line.told.get("whole") != (self.last.hash if self.last.told else FIRST):
            self.wrong(
                line.place, f"{self.last.place} was changed, or lines before the one that is cut were removed"
            )

    def _begins(self, text: bytes) -> bool:
        """Whether a line that is cut follows the last one."""
        begin = f'{{"prev":"{self.last.hash}'.encode()
        return text[: len(begin)] == begin[: len(text)]

    def _check(self, line: Line) -> None:
        before, told = self.last, line.told
        if not before.told and told["prev"] != FIRST and "after" in told:
            self.missing = True
            complain(f"{line.place}: the journal began before, in {told['after']}, which is not here")
        elif told["prev"] != before.hash:
            between = f"{before.place} was changed, or lines before this one were removed or inserted"
            self.wrong(line.place, f"it does not follow the line before: {between}")
        digest = str(told.get("robots"))
        if _DIGEST.fullmatch(digest) and digest not in self._checked:
            self._checked.add(digest)
            body = self.copy(digest)
            if body is None or sha256(body).hexdigest() != digest:
                self.wrong(line.place, f"its robots.txt, {self._copies / digest}, was changed or removed")


def _told(text: bytes) -> dict[str, Any]:
    """Return what a line says; nothing if it is none of a journal."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    whole = isinstance(told, dict) and all(isinstance(told.get(name), str) for name in ("prev", "at", "kind"))
    return told if whole else {}


def journal(options: argparse.Namespace) -> Exit:
    """Run the action. Raises InvalidOption, InvalidURL, OSError."""
    if (options.action == "show") != (options.url is not None):
        raise InvalidOption("write polite journal verify FILE, or polite journal show URL FILE")
    chain = Chain(Path(options.file).resolve())
    found = _verified(chain, options) if options.action == "verify" else _shown(chain, options)
    if chain.broken:
        return Exit.DISALLOWED
    return Exit.UNREACHABLE if chain.missing or not found else Exit.ALLOWED


def _verified(chain: Chain, options: argparse.Namespace) -> bool:
    lines, published = 0, options.hash is None
    for line in chain.lines():
        lines += 1
        published = published or line.hash == options.hash.lower()
    if not published:
        chain.wrong(options.file, f"no line has the hash {options.hash}")
    ended = "" if chain.last.told.get("kind") == "closed" else ", and no end: the gate is open, or was killed"
    files = counted(len(chain.files), "file")
    print(f"{counted(lines, 'line')} in {files}{ended}; hash of the last: {chain.last.hash}")
    return True


def _shown(chain: Chain, options: argparse.Namespace) -> bool:
    """Print each decision about the URL, or the last one at a date, with the robots.txt that was known."""
    target = Target.of(options.url)
    latest = None if options.at is None else dated(options.at.timestamp())
    run: dict[str, Any] = {}
    robots: dict[str, Any] = {}
    last: tuple[Line, dict[str, Any], dict[str, Any]] | None = None
    for line in chain.lines():
        told = line.told
        if latest is not None and told["at"] > latest:
            break
        if told["kind"] in ("opened", "continued"):
            run = told
        elif told["kind"] == "robots" and told.get("origin") == target.origin.text:
            robots = told
        elif told.get("url") == target.url and told["kind"] in _DECIDED:
            last = line, run, robots
            if latest is None:
                _show(chain, target, *last)
    if latest is not None and last is not None:
        _show(chain, target, *last)
    elif last is None and robots:
        none = {"at": "until then", "kind": "no decision", "robots": robots["robots"]}
        _show(chain, target, chain.last._replace(told=none), run, robots)
    elif last is None:
        complain(f"{options.file} has nothing about {target.url}")
    return last is not None


def _show(chain: Chain, target: Target, line: Line, run: dict[str, Any], robots: dict[str, Any]) -> None:
    told, body = line.told, chain.copy(line.told.get("robots"))
    because = " ".join(str(told[name]) for name in ("reason", "rule", "because") if told.get(name))
    rule = f" (line {told['line']})" if told.get("line") else ""
    shown = [f"{told['at']} {told['kind']} {because}{rule}".rstrip(), f"agent: {run.get('agent')}"]
    if (
        robots
        and told.get("robots") is not None
        and told["robots"] == robots.get("robots")
        and "status" in robots
    ):
        shown.append(
            f"robots.txt: status {robots['status']}, received {robots['received']} from {robots['from']}"
        )
        shown += [f"use: {signal}" for signal in robots["signals"]]
    shown.append(f"digest: {told.get('robots')}")
    if body is not None and run.get("dialect") in BY_NAME:
        agent = UserAgent(run["agent"])
        agent = agent if list(agent.named) == run["names"] else UserAgent(run["agent"], run["names"])
        decision = parse(body, dialect=BY_NAME[run["dialect"]]).decide(agent, target.url)
        shown.append(f"decided again from the copy: {decision}")
        if told.get("reason") in ("RULE", "NO_RULE") and decision.allowed != (told["kind"] == "granted"):
            chain.wrong(line.place, "the copy of robots.txt decides otherwise")
    if told["kind"] == "granted":
        shown.append(
            f"delay: {told['asked_s']} s asked for by robots.txt, {told['kept_s']} s since the turn before"
        )
    print(target.url, *map(printable, shown), f"line: {line.place}, hash {line.hash}", sep="\n  ")
