"""A key file."""

from pathlib import Path

import pytest

from polite.signing.key import SigningKey


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    SigningKey.make(tmp_path / "key.pem")
    return tmp_path / "key.pem"


@pytest.fixture
def key(key_file: Path) -> SigningKey:
    return SigningKey.read(key_file)
