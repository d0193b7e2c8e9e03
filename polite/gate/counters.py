"""What a gate counts, always, from its beginning: plain numbers that grow."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """`granted`: permits, those of a frontier included; `waited`: those of them that had to wait. `refused`: by robots.txt.

    `slowed`: answers of 429 or 503. `opened`, `closed`: circuits. `skipped`: turns that came and were not used. `robots`: turns
    taken for robots.txt, each redirect counted. `reclaimed`: turns taken back from permits that were held for too long.
    """

    granted: int = 0
    waited: int = 0
    refused: int = 0
    slowed: int = 0
    opened: int = 0
    closed: int = 0
    skipped: int = 0
    robots: int = 0
    reclaimed: int = 0
