"""The time limit of the fuzz targets is for `./dev fuzz`: coverage and a busy machine are slow."""

import pytest

import tests.fuzz.deadline


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tests.fuzz.deadline, "LIMIT_S", 30.0)
