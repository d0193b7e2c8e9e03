"""A real server for the contract of stores."""

from tests.many.conftest import _shared_valkey, valkey

__all__ = ["_shared_valkey", "valkey"]
