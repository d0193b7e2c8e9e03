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
        asks: returns a function that decides all prepared (agent, URL) pairs.
        anew: whether the engine parses the file for each decision.
    """

    name: str
    read: Callable[[str], object]
    asks: Callable[[object, list[tuple[str, str]]], None]
    anew: bool = False


def peers() -> list[Peer]:
    """Return the installed engines, Protego first, since targets refer to it. Print those that are missing."""
    found = [Peer("Protego", Protego.parse, _ask_protego), Peer("robotparser", _robotparser, _ask_url_last)]
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


def questions(case: Case) -> list[tuple[str, str]]:
    return [(agent.tokens[0], f"https://example.com{path}") for agent, path in case.questions]


def _ask_protego(file, questions) -> None:
    ask = file.can_fetch
    for agent, url in questions:
        ask(url, agent)


def _ask_url_last(file, questions) -> None:
    ask = file.can_fetch
    for agent, url in questions:
        ask(agent, url)


def _robotparser(text: str) -> RobotFileParser:
    file = RobotFileParser()
    file.parse(text.splitlines())
    file.modified()
    return file


def _robotspy(module) -> Peer:
    return Peer("robotspy", module.RobotsParser.from_string, _ask_url_last)


def _reppy(module) -> Peer:
    def ask(file, questions) -> None:
        for agent, url in questions:
            file.allowed(url, agent)

    return Peer("reppy", lambda text: module.Robots.parse("https://example.com/robots.txt", text), ask)


def _google(module) -> Peer:
    ask_one = module.RobotsMatcher().OneAgentAllowedByRobots

    def ask(text, questions) -> None:
        for agent, url in questions:
            ask_one(text, agent, url)

    return Peer(GOOGLE, lambda text: text, ask, anew=True)
