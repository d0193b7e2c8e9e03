"""Negative controls: defects that a fault must make visible to the judge. Files of edits, as in tests/simulation/defects."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.defects import Defect, Edit


@dataclass(frozen=True)
class Control:
    """A defect, and the fault under which the judge must report short gaps."""

    defect: Defect
    fault: str


def _read(file: Path) -> Control:
    content = tomllib.loads(file.read_text())
    edits = tuple(Edit(**edit) for edit in content["edit"])
    return Control(Defect(file.stem, content["name"], edits, seed=0, machines=0), content["fault"])


CONTROLS = {file.stem: _read(file) for file in sorted((Path(__file__).parent / "controls").glob("*.toml"))}
