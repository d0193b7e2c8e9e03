"""The simulation finds each fixed defect again when it is restored."""

import re

import pytest

from tests.simulation.defects import DEFECTS, ROOT, restored, simulate


@pytest.mark.parametrize("name", DEFECTS)
def test_what_is_restored_can_be_put_in(name):
    edits = DEFECTS[name].edits

    assert [(ROOT / edit.file).read_text().count(edit.fixed) for edit in edits] == [1] * len(edits)


@pytest.mark.slow("runs copies of the sources in processes")
@pytest.mark.pure("runs copies of the sources")
@pytest.mark.parametrize("name", DEFECTS)
def test_a_restored_defect_is_found(name):
    defect = DEFECTS[name]

    with restored(defect) as package:
        ran = simulate(package, "--from", str(defect.seed), "--seeds", "1", "--jobs", "1", *defect.options)

    assert f"seed {defect.seed}: " in ran.stdout, ran.stdout[-2_000:] + ran.stderr[-2_000:]
    assert ran.returncode == 1
    # An edit that does not fit the code of now would be found by any world.
    assert re.search("(Name|Attribute|Import)Error", ran.stdout) is None, ran.stdout[-2_000:]
