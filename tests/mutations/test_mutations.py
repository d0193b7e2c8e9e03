"""The list of mutations fits the code of now."""

import pytest

from tests.mutations.__main__ import ROOT, mutations


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation["name"])
def test_what_is_mutated_occurs_once(mutation: dict[str, str]) -> None:
    assert mutation["old"] != mutation["new"]
    assert (ROOT / mutation["file"]).read_text().count(mutation["old"]) == 1
    assert all((ROOT / path).exists() for path in mutation["tests"].split())
