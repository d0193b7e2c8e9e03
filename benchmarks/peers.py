"""The other engines, if they are installed: how each parses a file and decides."""

import importlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.robotparser import RobotFileParser

from protego import Protego

from benchmarks.corpus import Case

GOOGLE = "Google's C++ (jwm-robotstxt)"


class Peer(NamedTuple):
    """One engine.

    Attributes:
        read: parses text.
        decide: decides all (agent, URL) pairs for what `read` returned.
        anew: whether the engine parses the file for each decision.
    """

    name: str
    read: Callable[[str], object]
    decide: Callable[[object, list[tuple[str, str]]], None]
    anew: bool = False


def peers() -> list[Peer]:
    """Return the installed engines, Protego first, since targets refer to it. Print those that are missing."""
    found = [
        Peer("Protego", Protego.parse, _decide_protego),
        Peer("robotparser", _robotparser, _decide_url_last),
    ]
    for name, module, make in (
        ("robotspy", "robots", _robotspy),
        ("reppy", "reppy.robots", _reppy),
        (GOOGLE, "jwm.robotstxt.googlebot", _google),
    ):
        try:
            found.append(make(importlib.import_module(module)))
        except ImportError:
            print(f"{name}: not installed")
    return found


def decisions(case: Case) -> list[tuple[str, str]]:
    return [(agent.tokens[0], f"https://example.com{path}") for agent, path in case.decisions]


def _decide_protego(file, decisions) -> None:
    can_fetch = file.can_fetch
    for agent, url in decisions:
        can_fetch(url, agent)


def _decide_url_last(file, decisions) -> None:
    can_fetch = file.can_fetch
    for agent, url in decisions:
        can_fetch(agent, url)


def _robotparser(text: str) -> RobotFileParser:
    file = RobotFileParser()
    file.parse(text.splitlines())
    file.modified()
    return file


def _robotspy(module) -> Peer:
    return Peer("robotspy", module.RobotsParser.from_string, _decide_url_last)


def _reppy(module) -> Peer:
    def decide(file, decisions) -> None:
        for agent, url in decisions:
            file.allowed(url, agent)

    return Peer("reppy", lambda text: module.Robots.parse("https://example.com/robots.txt", text), decide)


def _google(module) -> Peer:
    allowed = module.RobotsMatcher().OneAgentAllowedByRobots

    def decide(text, decisions) -> None:
        for agent, url in decisions:
            allowed(text, agent, url)

    return Peer(GOOGLE, lambda text: text, decide, anew=True)
