"""A journal records each decision; `polite journal` finds what was changed, and shows what was known and decided."""

import asyncio
import errno
import json
import os
from hashlib import sha256

import pytest

import polite
from polite.cli.main import main
from polite.gate import journal as writing
from polite.testing import ManualClock
from tests.gate.support import PAGE, PRIVATE, RULES, SITE, opened, visit
from tests.support import fetch_all, fetch_rest

DIGEST = sha256(RULES).hexdigest()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "journal"


async def written(file):
    async with opened(journal=file) as (gate, _):
        await visit(gate, PAGE.replace("://", "://user:secret@") + "?q=1")
        with pytest.raises(polite.Disallowed):
            await visit(gate, PRIVATE)
        gate.hold(f"{SITE}/b", by="ann@host", because="a complaint", until=1.9e9)


async def notes(file, count, largest):
    agent, dialect = polite.UserAgent("TestBot/1.0"), polite.RFC9309
    for number in range(count):
        journal = writing.Journal(file, ManualClock(), agent, dialect, largest=largest)
        await journal.open()
        journal.note("noted", number=number)
        await journal.close()


async def test_each_decision_is_a_line_with_its_rule_its_file_and_its_pace(file):
    async with opened(journal=file, pacing=polite.PacingPolicy(max_pages=4)) as (gate, _):
        await visit(gate, f"{SITE}/private/open")
        async with polite.open_frontier(gate) as frontier:
            for url in (PAGE, PRIVATE, f"{SITE}/last"):
                await frontier.put(url)
            await fetch_rest(frontier)
        await visit(gate, f"{SITE}/a")
        with pytest.raises(polite.OriginDeclined):
            await visit(gate, f"{SITE}/b")

    lines = {line.get("url", line["kind"]): line for line in map(json.loads, file.read_text().splitlines())}
    assert list(lines)[:3] == ["opened", "fetched", "robots"]
    assert (file.parent / "journal.robots" / DIGEST).read_bytes() == RULES
    assert lines["robots"]["robots"] == lines[PAGE]["robots"] == lines[PRIVATE]["robots"] == DIGEST
    names = ("kind", "reason", "rule", "line", "kept_s")
    decided = {url: tuple(map(line.get, names)) for url, line in lines.items()}
    assert decided[f"{SITE}/private/open"] == ("granted", "RULE", "Allow: /private/open", 3, None)
    assert decided[PAGE] == ("granted", "NO_RULE", None, None, 1.0)
    assert decided[PRIVATE] == ("refused", "RULE", "Disallow: /private", 2, None)
    assert decided[f"{SITE}/b"][0] == "declined"


async def test_what_was_known_and_decided_is_shown(file, capsys):
    await written(file)

    assert main(["journal", "show", PRIVATE, str(file)]) == 0
    shown = capsys.readouterr().out
    assert "refused RULE Disallow: /private (line 2)" in shown
    assert "decided again from the copy: disallowed by Disallow: /private (line 2)" in shown
    assert "secret" not in file.read_text()
    assert main(["journal", "show", PRIVATE, str(file), "--at", "2000-01-01"]) == 3
    assert main(["journal", "show", f"{SITE}/other", str(file), "--at", "2100-01-01"]) == 3
    assert "no decision" in capsys.readouterr().out
    last = sha256(file.read_bytes().splitlines()[-1]).hexdigest()
    assert main(["journal", "verify", str(file), "--hash", last]) == 0
    assert main(["journal", "verify", str(file), "--hash", "0" * 64]) == 1


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("change", ["changed", "removed", "inserted", "cut"])
async def test_a_line_that_was_changed_removed_inserted_or_cut_is_found(file, at, change):
    await written(file)
    lines = file.read_bytes().splitlines(keepends=True)
    line = lines[at]
    lines[at : at + 1] = {
        "changed": [line.replace(b'"kind":"', b'"kind":"un')],
        "removed": [],
        "inserted": [line, line],
        "cut": [line[:-9]],
    }[change]
    file.write_bytes(b"".join(lines))

    assert main(["journal", "verify", str(file)]) == 1


async def test_a_changed_copy_and_a_last_line_cut_by_a_kill_are_told_apart(file):
    await written(file)
    file.write_bytes(file.read_bytes()[:-20])

    assert main(["journal", "verify", str(file)]) == 3
    await written(file)
    assert main(["journal", "verify", str(file)]) == 0
    assert b'"cut":' in file.read_bytes()
    (file.parent / "journal.robots" / DIGEST).write_bytes(b"")
    assert main(["journal", "verify", str(file)]) == 1


async def test_the_chain_goes_on_across_files(file):
    await notes(file, 10, largest=1_200)
    rotated = sorted(file.parent.glob("journal.0*"))

    assert len(rotated) > 2
    assert main(["journal", "verify", str(file)]) == 0
    file.rename(file.parent / f"journal.{len(rotated) + 1:06}")  # a kill just after a rotation
    assert main(["journal", "verify", str(file)]) == 0
    await notes(file, 1, largest=1_200)
    assert main(["journal", "verify", str(file)]) == 0
    rotated[0].unlink()
    assert main(["journal", "verify", str(file)]) == 3
    rotated[2].unlink()
    assert main(["journal", "verify", str(file)]) == 1


async def test_no_permit_is_given_that_cannot_be_recorded(file, monkeypatch):
    monkeypatch.setattr(writing, "_RETRY_S", 0.001)
    write, full = os.write, True

    def failing(descriptor: int, octets: bytes) -> int:
        if full and octets.startswith(b'{"prev'):
            write(descriptor, octets[:50])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, octets)

    async with opened(journal=file) as (gate, _):
        monkeypatch.setattr(writing.os, "write", failing)
        with pytest.raises(polite.StoreFailed, match="No space left"):
            for number in range(1_000):
                await asyncio.to_thread(asyncio.run, asyncio.sleep(0.001))
                await visit(gate, f"{SITE}/{number}")
        async with polite.open_frontier(gate) as frontier:
            await frontier.put(PAGE)
            with pytest.raises(polite.StoreFailed):
                await fetch_all(frontier)
            full = False
            await asyncio.to_thread(asyncio.run, asyncio.sleep(0.2))
            assert await fetch_rest(frontier) == [PAGE]
        assert (gate.waiting, gate.inside) == (0, 0)

    assert main(["journal", "verify", str(file)]) == 0
    assert PAGE in file.read_text()


async def test_one_gate_writes_to_a_file_and_to_no_other_file_than_a_journal(file):
    async with opened(journal=file):
        with pytest.raises(polite.StoreFailed, match="another gate"):
            async with opened(journal=file):
                pass
    file.write_text("notes\n")
    for journal in (file, file / "no", 7):
        with pytest.raises((polite.StoreFailed, polite.InvalidOption), match="journal"):
            async with opened(journal=journal):
                pass
