"""A key of its own, its file, and the key of the standards."""

import pytest

from polite.signing.key import SigningKey
from tests.signing import vectors


@pytest.fixture
def key_file(tmp_path):
    SigningKey.make(tmp_path / "key.pem")
    return tmp_path / "key.pem"


@pytest.fixture
def key(key_file):
    return SigningKey.read(key_file)


@pytest.fixture
def rfc_key(tmp_path):
    (tmp_path / "rfc.pem").write_bytes(vectors.PEM)
    return SigningKey.read(tmp_path / "rfc.pem")
