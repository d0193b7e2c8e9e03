"""A file for the frontier of a test."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queue.sqlite"
