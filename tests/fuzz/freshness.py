"""Any octets as Cache-Control and Age: Age only shortens the lifetime, and a snapshot stays within the policy's limits."""

import math

from polite.robots.exchange import max_age_s
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"max-age=", b"s-maxage=", b"no-store", b"no-cache", b"private", b"must-revalidate", b'"60"', b"60",
    b"0", b"-1", b"999999999999999999", b"=", b",", b";", b" ", b"\t", b"\n", b"MAX-AGE", b"\xd9\xa3",
    b"1.5",
)  # fmt: skip
SEEDS = (b"max-age=60, must-revalidate\n12", b"no-store\n", b'max-age="3600", max-age=10\n999999999999999999')
POLICY = RobotsPolicy()
NOW = 1_700_000_000.0


def one_input(data: bytes) -> None:
    """Input: a line of Cache-Control, then Age."""
    control, _, age = data.decode("utf-8", "surrogateescape").partition("\n")
    with in_time(data):
        alone, aged = max_age_s(control), max_age_s(control, age)
        forbidden = max_age_s(f"no-store, {control}", age)
        snapshot = renewed(None, Found(b"", 200, "https://a.test/robots.txt", max_age_s=aged), POLICY, NOW)
    expect((alone is None) is (aged is None), "Age adds or removes a max-age", alone, aged)
    expect(aged is None or 0.0 <= aged <= (alone or 0.0) < math.inf, "Age lengthens a lifetime", alone, aged)
    expect(forbidden == 0.0, "no-store does not give 0", forbidden)
    ttl = snapshot.expires_at - NOW
    expect(POLICY.min_ttl <= ttl <= POLICY.max_ttl, "the time to live exceeds its limits", ttl)
