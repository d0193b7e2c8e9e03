"""Names of sessions."""

import os
import re
import socket

import pytest

from polite.stores.redis.session_name import session_name


def test_a_session_is_named_after_its_machine_and_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "crawler-7d9f8-x2x4z")

    assert re.fullmatch(rf"crawler-7d9f8-x2x4z-{os.getpid()}-[0-9a-f]{{16}}", session_name())
    assert session_name() != session_name()


@pytest.mark.parametrize("machine", ["", "a:b\nc}", "x" * 300, "höst", "\x1b[31m"])
def test_any_machine_gives_a_name_that_the_server_can_store_beside_other_fields(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: machine)

    assert re.fullmatch(r"[A-Za-z0-9.-]{18,100}", session_name())
