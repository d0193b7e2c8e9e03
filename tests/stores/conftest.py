"""A store in a file of its own, closed when the test is over."""

import pytest

from polite.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawl.sqlite"


@pytest.fixture
async def opened(path):
    """`opened(**options)`: a store of the file `path`; its clock stands at second 20 of 1970."""
    stores = []

    def open_store(**options):
        stores.append(SqliteStore(path, **{"wall": lambda: 20.0, **options}))
        return stores[-1]

    yield open_store
    for store in stores:
        await store.close()
