"""The benchmark that compares HTTP clients alone and with polite: it runs, and its judge sees what is impolite."""

import pytest

from benchmarks.adoption import QUICK, compare

CRAWL = QUICK[0]
HOSTS = CRAWL[0]
# Where the figures of a row begin, and which of them, split at spaces, counts the disallowed pages.
FIGURES, DISALLOWED = 36, 4


# httpx2 is crawled with as httpx is.
@pytest.mark.slow("clients in real time")
@pytest.mark.parametrize("client", ["aiohttp", "httpx"])
def test_a_client_is_polite_with_polite_alone(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    held = compare(client, *CRAWL)
    rows = capsys.readouterr().out.splitlines()
    disallowed = {row[:FIGURES]: int(row[FIGURES:].split()[DISALLOWED]) for row in rows}
    assert held, rows
    assert all(count == (HOSTS if "alone" in way else 0) for way, count in disallowed.items()), rows
