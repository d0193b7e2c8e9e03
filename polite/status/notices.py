"""What an operator should know first: whether the crawl is well, and if not, why. Pure."""

from typing import NamedTuple

from polite.status.timeline import Second

# Nothing was granted for so long (seconds), although URLs wait: that is said.
_SILENT_S = 60.0
# A share of failed or slowed responses in the last minute that is said, if there were so many responses.
_SHARE, _ENOUGH = 0.2, 10
# The event loop was late by so much (seconds).
_LATE_S = 0.5


class Notice(NamedTuple):
    """One sentence. `level` is "bad", "warn" or "info"."""

    level: str
    text: str


class Facts(NamedTuple):
    """What notices are made of.

    Attributes:
        closed: Whether the gate is closed.
        failure: What stopped the frontier; None if nothing did.
        ended: Whether the frontier has ended: nothing is left.
        paused: Whether `Frontier.pause` was called.
        store_away_s: For how long the shared store has not responded; None if it does.
        waiting: URLs and permits that wait.
        silent_s: Seconds since a permit was granted last.
        minute: The last 60 seconds.
        open_circuits: Circuits that are open, as far as is known.
        unreachable: Origins that wait since their robots.txt was out of reach.
        wait_for_worker: Origins that wait for an idle worker.
        late_s: By how much the event loop was late at most in the last minute.
    """

    closed: bool
    failure: str | None
    ended: bool
    paused: bool
    store_away_s: float | None
    waiting: int
    silent_s: float
    minute: list[Second]
    open_circuits: int
    unreachable: int
    wait_for_worker: int
    late_s: float


def notices(facts: Facts) -> list[Notice]:
    """Return what is not as it should be, the gravest first; otherwise that all is well."""
    found = [*_ends(facts), *_troubles(facts)]
    order = ("bad", "warn", "info")
    return sorted(found, key=lambda notice: order.index(notice.level)) or [Notice("info", "All is well.")]


def _ends(facts: Facts) -> list[Notice]:
    found = []
    if facts.failure is not None:
        found.append(Notice("bad", f"The frontier has failed: {facts.failure}"))
    elif facts.closed:
        found.append(Notice("warn", "The gate is closed: no more turns are granted."))
    elif facts.ended:
        found.append(Notice("info", "The crawl has ended: nothing is left."))
    if facts.paused and not facts.closed:
        found.append(Notice("warn", "The frontier is paused: nothing is given out until resume()."))
    return found


def _troubles(facts: Facts) -> list[Notice]:
    found = []
    if facts.store_away_s is not None:
        found.append(Notice("bad", f"The shared store has not responded for {facts.store_away_s:.0f} s."))
    if facts.waiting and facts.silent_s >= _SILENT_S and not (facts.closed or facts.paused):
        waits = f"{_many(facts.waiting, 'URL')} {_verb(facts.waiting, 'wait')}"
        found.append(Notice("bad", f"No permit was granted for {facts.silent_s:.0f} s, and {waits}."))
    if facts.open_circuits:
        verb = "is" if facts.open_circuits == 1 else "are"
        found.append(Notice("warn", f"{_many(facts.open_circuits, 'circuit')} {verb} open."))
    if facts.unreachable:
        found.append(
            Notice(
                "warn",
                f"robots.txt of {_many(facts.unreachable, 'origin')} is out of reach; "
                f"{'its' if facts.unreachable == 1 else 'their'} URLs wait.",
            )
        )
    found += _of_responses(facts.minute)
    if facts.wait_for_worker:
        found.append(
            Notice(
                "info",
                f"{_many(facts.wait_for_worker, 'origin')} {_verb(facts.wait_for_worker, 'wait')} for an idle worker: "
                "more workers would make the crawl faster.",
            )
        )
    if facts.late_s >= _LATE_S:
        found.append(
            Notice(
                "warn",
                f"The event loop was late by {facts.late_s:.1f} s in the last minute: something blocks it.",
            )
        )
    return found


def _of_responses(minute: list[Second]) -> list[Notice]:
    failed = sum(each.failed for each in minute)
    slowed = sum(each.slowed for each in minute)
    every = failed + slowed + sum(each.well + each.not_well for each in minute)
    found = []
    if failed >= _SHARE * every and every >= _ENOUGH:
        found.append(
            Notice("bad", f"{failed} of {every} requests failed in the last minute (5xx, or no response).")
        )
    if slowed >= _SHARE * every and every >= _ENOUGH:
        found.append(Notice("bad", f"{slowed} of {every} responses in the last minute were 429 or 503."))
    elif slowed:
        verb = "response in the last minute was" if slowed == 1 else "responses in the last minute were"
        found.append(Notice("warn", f"{slowed} {verb} 429 or 503."))
    return found


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb
