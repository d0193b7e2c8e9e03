"""`polite serve`: its options, what it prints, and its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from polite.cli.main import main, parse
from polite.cli.serve import _place, _tokens

AGENT = ["--agent", "ExampleBot/1.0 (+https://example.com/bot)"]
TOKEN = "a-token-of-enough-characters"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "polite serve needs a name by which sites know your crawler"),
        ([*AGENT, "--listen", "here"], "--listen must be HOST:PORT"),
        ([*AGENT, "--listen", "127.0.0.1:99999"], "--listen must be HOST:PORT"),
        ([*AGENT, "--listen", "0.0.0.0:0"], "at least 16 characters (polite serve: --token-file)"),
        ([*AGENT, "--store", "redis://127.0.0.1/0"], "--store URL and --crawl NAME are needed together"),
        ([*AGENT, "--crawl", "x"], "--store URL and --crawl NAME are needed together"),
        ([*AGENT, "--sign", "key"], "--sign KEY and --signature-agent URL are needed together"),
        ([*AGENT, "--signature-agent-as-string"], "has no effect without --sign"),
        ([*AGENT, "--forward", "Host"], "forward cannot have 'Host'"),
        ([*AGENT, "--token-file", "missing"], "missing: No such file"),
    ],
)
def test_options_that_are_wrong_are_one_line(arguments, says, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLITE_AGENT", raising=False)
    assert main(["serve", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", *AGENT, "--listen", place]) == 2
    assert capsys.readouterr().err.startswith(f"polite: --listen {place}: ")


def test_places():
    assert _place("[::1]:8700") == {"host": "::1", "port": 8700}
    assert _place("localhost:0") == {"host": "localhost", "port": 0}
    assert _place("unix:/run/polite.sock") == {"unix": "/run/polite.sock"}


def test_tokens_come_from_a_file_and_the_environment_and_are_never_shown(tmp_path, monkeypatch, capsys):
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n\nnode: {TOKEN}1\n{TOKEN}2\n")
    monkeypatch.setenv("POLITE_SERVE_TOKEN", f"{TOKEN}0")
    options = parse(["serve", *AGENT, "--token-file", str(file)])
    assert _tokens(options) == {"operator": f"{TOKEN}0", "node": f"{TOKEN}1", "line 4": f"{TOKEN}2"}

    for text, says in (
        (f"a: {TOKEN}\na: {TOKEN}x\n", "line 2: the name or the token is there twice"),
        (f"two words {TOKEN}\n", "line 1: it must be NAME: TOKEN"),
        ("\nshort\n", "line 2: it must be NAME: TOKEN, or a token alone, which has 16 to 1024"),
        (f"{TOKEN}0\n", "line 1: the name or the token is there twice; POLITE_SERVE_TOKEN is one"),
    ):
        file.write_text(text)
        assert main(["serve", *AGENT, "--token-file", str(file), "--listen", "127.0.0.1:0"]) == 2
        err = capsys.readouterr().err
        assert says in err
        assert TOKEN not in err
    monkeypatch.setenv("POLITE_SERVE_TOKEN", "short")
    assert main(["serve", *AGENT, "--listen", "127.0.0.1:0"]) == 2
    assert "POLITE_SERVE_TOKEN must have 16 to 1024 visible" in capsys.readouterr().err


def test_a_file_has_a_table_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "polite.toml").write_text(
        "[fetch]\ndelay = 9\n[serve]\ndelay = 3\nallow-private = false\nname = ['a.example']\n"
    )
    monkeypatch.setenv("POLITE_CONFIG", str(tmp_path / "polite.toml"))
    options = parse(["serve", *AGENT])
    assert (options.delay, options.allow_private, options.name) == (3.0, False, ["a.example"])
    assert parse(["fetch", "http://a.test/"]).delay == 9.0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_it_prints_its_address_serves_and_waits_for_permits_when_it_ends(number, status, tmp_path):
    command = [sys.executable, "-m", "polite", "serve", *AGENT, "--listen", "127.0.0.1:0", "--allow-private"]
    files = {"--store": "robots.sqlite", "--recrawl": "pages.sqlite", "--journal": "journal"}
    command += ["--delay", "0", *(text for name in files for text in (name, str(tmp_path / files[name])))]
    root = Path(__file__).resolve().parents[2]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)
    try:
        url = started.stdout.readline().strip()

        def ask(path, value=None):
            body = None if value is None else json.dumps(value).encode()
            request = urllib.request.Request(url + path, body, {"Content-Type": "application/json"})  # noqa: S310
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return json.load(answer)

        # The site is this server itself: it has no robots.txt.
        permit = ask("v1/permits", {"url": f"{url}status.css", "conditional": True})
        assert permit["headers"]["User-Agent"] == AGENT[1]
        os.kill(started.pid, number)
        time.sleep(0.3)
        assert started.poll() is None
        assert ask(f"v1/permits/{permit['id']}", {"status": 200}) == {"ended": True, "valid": True}
        out, err = started.communicate(timeout=20)
    finally:
        started.kill()
    assert (started.returncode, out) == (status, "")
    assert main(["journal", "verify", str(tmp_path / "journal")]) == 0
    assert "stopping: waiting for 1 permit, 30 s at most" in err
