"""`./dev types`, `./dev man`, the loops of `./dev matrix`, and the guard that refuses what leaves the machine."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys

import aiodns
import anyio
import pytest

from polite.cli.main import ENVIRONMENT
from tests.project import loops, man_pages, public_types


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no eager tasks")
async def test_eager_tasks_begin_at_once_and_task_groups_of_anyio_know_them() -> None:
    asyncio.get_running_loop().set_task_factory(loops.eager_factory())
    entered = []

    async def enter() -> None:
        entered.append(None)
        with anyio.CancelScope():
            await asyncio.sleep(0)

    task = asyncio.create_task(enter())
    assert entered
    async with anyio.create_task_group() as group:
        group.start_soon(enter)
    await task

    assert len(entered) == 2


def test_a_public_type_that_each_checker_infers_for_itself_is_a_failure(monkeypatch, capsys) -> None:
    guessed = {
        "file": "polite/task.py",
        "severity": "error",
        "message": "Type is missing type annotation",
        "range": {"start": {"line": 6}},
    }

    def report(*symbols):
        names = ("name", "isExported", "isTypeKnown", "diagnostics")
        rows = [dict(zip(names, symbol, strict=True)) for symbol in symbols]
        text = json.dumps({"typeCompleteness": {"symbols": rows}} if rows else {}).encode()
        done = subprocess.CompletedProcess([], 1, stdout=text)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
        return public_types.main(), capsys.readouterr().out

    status, out = report(
        ("polite.Task.url", True, False, [{**guessed, "severity": "warning"}, guessed]),
        ("polite.Task", True, False, []),  # only since its field is not known
        ("polite.Gate", True, True, []),
        ("polite.other", False, False, [guessed]),
        ("polite.integrations.crawl4ai.Crawler", True, False, [guessed]),
    )

    assert status == 1
    assert out.splitlines() == [
        "polite/task.py:7: polite.Task.url: Type is missing type annotation",
        "4 public symbols, 1 problem; 1 left out, since crawl4ai is not typed",
    ]
    assert report(("polite.Gate", True, True, []))[0] == 0
    assert report()[0] == 2


def test_the_man_pages_are_those_of_the_parser(monkeypatch, tmp_path) -> None:
    tracked = {file.name: file.read_text(encoding="utf-8") for file in man_pages.FOLDER.iterdir()}
    assert tracked == man_pages.pages(), "run ./dev man"
    text = "".join(tracked.values())
    assert all(f"\\fB{name}\\fR" in text for name in ENVIRONMENT)
    assert man_pages._text(".so /etc - \\n") == "\\&.so /etc \\- \\en"

    monkeypatch.setattr(man_pages, "ROOT", tmp_path)
    monkeypatch.setattr(man_pages, "FOLDER", tmp_path)
    (tmp_path / "polite-gone.1").touch()
    assert man_pages.main() == 0
    assert {file.name for file in tmp_path.iterdir()} == {*tracked}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_no_error() -> None:
    files = sorted(map(str, man_pages.FOLDER.iterdir()))

    subprocess.run(["mandoc", "-Tlint", "-Werror", *files], check=True)


def _send(peer: socket.socket) -> None:
    peer.sendto(b"?", ("192.0.2.1", 53))


@pytest.mark.parametrize(
    "leave",
    [
        lambda: socket.socket().connect(("192.0.2.1", 80)),
        lambda: _send(socket.socket(type=socket.SOCK_DGRAM)),
        lambda: socket.getaddrinfo("example.com", 80),
        aiodns.DNSResolver,
        lambda: aiodns.DNSResolver(nameservers=["192.0.2.53"]),
        lambda: setattr(aiodns.DNSResolver(nameservers=["127.0.0.1:1"]), "nameservers", ["192.0.2.53"]),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_no_test_leaves_the_machine(leave) -> None:
    with pytest.raises(Exception, match=r"may not (reach|ask)"):
        leave()
