"""The engines beside us: each reads a file and is asked about it in its own way, when it is installed."""

import importlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.robotparser import RobotFileParser

from protego import Protego

from benchmarks.corpus import Case

GOOGLE = "Google's C++ (jwm-robotstxt)"


class Peer(NamedTuple):
    """`read`: from text to a parsed file. `asks`: a function that asks a file all prepared (agent, URL) questions.

    `anew`: it keeps nothing of a file, and reads it for each question.
    """

    name: str
    read: Callable[[str], object]
    asks: Callable[[object, list[tuple[str, str]]], None]
    anew: bool = False


def peers() -> list[Peer]:
    """Those that are installed; Protego, against which the targets are set, first. Says which are not."""
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
