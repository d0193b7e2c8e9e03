"""Runs `polite matrix` with files of these contents."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polite.cli.main import main

ROBOTS = b"User-agent: *\nDisallow: /private/\nAllow: /private/press\n\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n"
AGENTS = b"ExampleBot/1.0\nGPTBot/1.2\n*\n"
URLS = b"https://example.com/about\nhttps://example.com/private/press\n/private/diary\n"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run with files named robots.txt, agents.txt and urls.txt; return the status, the output and the errors."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str, robots: bytes = ROBOTS, agents: bytes = AGENTS, urls: bytes = URLS):
        for name, body in {"robots.txt": robots, "agents.txt": agents, "urls.txt": urls}.items():
            (tmp_path / name).write_bytes(body)
        given = [
            part
            for name in ("robots", "agents", "urls")
            if f"--{name}" not in options
            for part in (f"--{name}", f"{name}.txt")
        ]
        return main(["matrix", *given, *options]), *capsys.readouterr()

    return run
