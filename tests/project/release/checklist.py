"""A checklist: steps that run in order, each with its result on a line."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import TextIO


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
    good: set[str] = set()
    failed = 0
    for step in steps:
        started = monotonic()
        word, note = _result(step, good)
        if word == "ok":
            good.add(step.name)
        failed += word == "failed"
        print(f"{word:<9} {step.name}{_seconds(monotonic() - started)}", file=out)
        for line in note.splitlines():
            print(f"{'':9} {line}", file=out)
        out.flush()
    return not failed


def _result(step: Step, good: set[str]) -> tuple[str, str]:
    missing = [name for name in step.needs if name not in good]
    if missing:
        return "not tried", f"needs: {', '.join(missing)}"
    try:
        return "ok", step.run()
    except LeftOut as reason:
        return "left out", str(reason)
    except (StepFailed, OSError) as reason:
        return "failed", str(reason)


def _seconds(taken: float) -> str:
    return f" ({taken:.0f} s)" if taken >= 1 else ""


_TAIL = 30


def run(*command: object, statuses: tuple[int, ...] = (0,), **options: object) -> str:
    """Run a command and return its standard output. Raises StepFailed with the last lines of both outputs."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode not in statuses:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL:])
        raise StepFailed(f"{' '.join(words)} ended with {done.returncode}:\n{tail}")
    return done.stdout
