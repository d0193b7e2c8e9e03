"""The limit on the CPU time of one input."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

# Seconds of CPU time for an input of MOST_OCTETS.
LIMIT_S = 0.1
MOST_OCTETS = 4_096


@contextmanager
def in_time(data: bytes) -> Iterator[None]:
    """Raise AssertionError if the block exceeds the limit."""
    started = process_time()
    yield
    took = process_time() - started
    if took > LIMIT_S:
        raise AssertionError(f"{len(data)} octets took {took:.3f} s")


def expect(held: object, what: str, *seen: object) -> None:
    """Raise AssertionError, even if assertions are disabled."""
    if not held:
        raise AssertionError(f"{what}: {', '.join(map(repr, seen))}"[:2_000])
