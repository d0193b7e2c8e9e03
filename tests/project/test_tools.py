"""`./dev man`, the loops of `./dev matrix`, and the guard that refuses what leaves the machine."""

import asyncio
import shutil
import socket
import subprocess
import sys

import aiodns
import anyio
import pytest

from polite.cli.main import ENVIRONMENT
from tests.project import loops, man_pages


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
