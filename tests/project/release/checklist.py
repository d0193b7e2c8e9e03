"""A checklist: steps that run in order, each with its result on a line."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import TextIO

# The lines of a command that failed that are shown.
_TAIL = 30


class StepFailed(Exception):
    """What is wrong, and what to do."""


class LeftOut(Exception):
    """Why a step cannot be tried on this machine. It is no failure."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: what is checked.
        run: returns a note for the reader, and raises StepFailed, LeftOut or OSError.
        needs: names of earlier steps. This one is not tried unless all of them are ok.
    """

    name: str
    run: Callable[[], str]
    needs: tuple[str, ...] = ()


def walk(steps: Iterable[Step], out: TextIO = sys.stdout) -> bool:
    """Run the steps, print a line or more for each, and return whether none failed. A failure does not stop the walk."""
    words: dict[str, str] = {}
    for step in steps:
        started = monotonic()
        missing = [name for name in step.needs if words.get(name) != "ok"]
        try:
            word, note = ("not tried", f"needs: {', '.join(missing)}") if missing else ("ok", step.run())
        except LeftOut as reason:
            word, note = "left out", str(reason)
        except (StepFailed, OSError) as reason:
            word, note = "failed", str(reason)
        words[step.name] = word
        taken = monotonic() - started
        print(f"{word:<9} {step.name}{f' ({taken:.0f} s)' if taken >= 1 else ''}", file=out)
        for line in note.splitlines():
            print(f"{'':9} {line}", file=out)
        out.flush()
    return "failed" not in words.values()


def run(*command: object, statuses: tuple[int, ...] = (0,), **options: object) -> str:
    """Run a command and return its standard output. Raises StepFailed with the last lines of both outputs."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode not in statuses:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL:])
        raise StepFailed(f"{' '.join(words)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def require_none(what: str, names: Iterable[str]) -> None:
    """Raise StepFailed unless there is no such name."""
    if found := sorted(names):
        raise StepFailed("\n".join(f"{name} {what}" for name in found[:20]))
