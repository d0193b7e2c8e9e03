"""The counters of a gate: plain numbers that only grow."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counts since the gate was opened (`Gate.counters`).

    Attributes:
        granted: Permits, those of frontiers included.
        waited: Permits that had to wait.
        refused: URLs that robots.txt disallowed.
        slowed: Responses that were refusals (`PacingPolicy.backoff_statuses`).
        declined: URLs that the pacing policy refused (OriginDeclined). Tasks that a frontier drops for it are not among them.
        opened: Circuits that opened.
        closed: Circuits that closed.
        skipped: Turns that were granted and not used.
        robots: Turns for robots.txt, one for each redirect.
        reclaimed: Turns taken back from permits that were held longer than `PacingPolicy.max_hold`.

    Example:
        print(gate.counters.refused, "URLs were disallowed")
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
    declined: int = 0
