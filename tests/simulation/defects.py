"""Fixed defects, each as an edit that restores it. The simulation must find them again."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOUND = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)
# Worlds per run. The first run is short, because worlds that fail are slow.
_FEW, _MANY = 30, 960


@dataclass(frozen=True)
class Edit:
    """`file` contains `fixed` once. Replacing it by `broken` restores the defect."""

    file: str
    fixed: str
    broken: str


@dataclass(frozen=True)
class Defect:
    """A fixed defect.

    Attributes:
        sentence: what goes wrong.
        edits: restore the defect.
        seed: a world that finds it.
        machines: it is one of the worlds of several machines.
    """

    name: str
    sentence: str
    edits: tuple[Edit, ...]
    seed: int
    machines: bool

    @property
    def options(self) -> list[str]:
        return ["--machines"] if self.machines else []


def _read(file: Path) -> Defect:
    content = tomllib.loads(file.read_text())
    edits = tuple(Edit(**edit) for edit in content["edit"])
    return Defect(file.stem, content["name"], edits, content.get("seed", 0), content.get("machines", False))


DEFECTS = {file.stem: _read(file) for file in sorted((Path(__file__).parent / "defects").glob("*.toml"))}


@contextmanager
def restored(defect: Defect) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="polite-defect-") as folder:
        # A compiled module would be imported instead of its source.
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
        shutil.copytree(ROOT / "polite", Path(folder) / "polite", ignore=ignored)
        for edit in defect.edits:
            file = Path(folder) / edit.file
            text = file.read_text()
            if text.count(edit.fixed) != 1:
                raise AssertionError(
                    f"{defect.name}: {edit.file} must contain this text once, not {text.count(edit.fixed)} times:\n{edit.fixed}"
                )
            file.write_text(text.replace(edit.fixed, edit.broken))
        yield Path(folder)


def simulate(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{package}{os.pathsep}{ROOT}", "COVERAGE_PROCESS_START": ""}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    # Bytecode of a copy that is deleted soon would only fill the disk.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-P", "-m", "tests.simulation", "--brief", *arguments]
    return subprocess.run(command, env=environment, cwd=package, capture_output=True, text=True, check=False)


def first_seed(defect: Defect, seeds: int) -> int | None:
    with restored(defect) as package:
        first, count = 0, _FEW
        while first < seeds:
            count_now = str(min(count, seeds - first))
            ran = simulate(package, "--from", str(first), "--seeds", count_now, *defect.options)
            if found := sorted(int(seed) for seed, _ in _FOUND.findall(ran.stdout)):
                return found[0]
            if ran.returncode:
                raise AssertionError(f"{defect.name}: {ran.stdout[-2_000:]}{ran.stderr[-2_000:]}")
            first, count = first + count, min(2 * count, _MANY)
    return None
