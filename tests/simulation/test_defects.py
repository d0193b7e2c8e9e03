"""Each defect that was mended is found again when it is brought back: else the simulation would be blind to it."""

import pytest

from tests.simulation.defects import DEFECTS, brought_back, simulate


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_that_is_brought_back_is_found(name):
    defect = DEFECTS[name]

    with brought_back(defect) as package:
        ran = simulate(package, "--from", str(defect.seed), "--seeds", "1", "--jobs", "1")

    assert f"seed {defect.seed}: " in ran.stdout, ran.stdout[-2_000:] + ran.stderr[-2_000:]
    assert ran.returncode == 1
