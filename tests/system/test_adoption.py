"""The benchmark that compares HTTP clients alone and with polite: it runs, and its judge sees what is impolite."""

import pytest

from benchmarks.adoption import QUICK, compare, polite_enough

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


@pytest.mark.parametrize(
    "fault", [{"short": 1}, {"disallowed": 1}, {"missing": 1}, {"robots": 0}, {"robots": 2}]
)
def test_any_fault_is_not_polite_enough(fault: dict[str, float]) -> None:
    polite = {"short": 0, "disallowed": 0, "missing": 0, "robots": 1}

    assert polite_enough(polite)
    assert not polite_enough({**polite, **fault})
