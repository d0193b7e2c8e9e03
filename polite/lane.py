"""A lane: what a frontier knows of one origin that has tasks, and how far that origin is on its way to a turn."""

from collections import deque

from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.robots.rules import RuleSet
from polite.standings import Standing
from polite.tasks import Task
from polite.turns import Cancellable


class Lane:
    """It is there as long as it has tasks; what it does is done to it by Lanes."""

    __slots__ = (
        "asked_for",
        "begun",
        "chosen",
        "cleared",
        "cleared_by",
        "doomed",
        "failures",
        "opening",
        "origin",
        "renewed",
        "runner",
        "sample",
        "scheduled",
        "standing",
        "turn",
        "unchecked",
    )

    def __init__(self, origin: Origin, sample: Target) -> None:
        self.origin = origin
        self.unchecked: deque[Task] | None = None  # put while no rules were known
        self.scheduled = 0  # tasks that are allowed: at the scheduler, or chosen
        self.sample = sample  # a URL that stands for the lane's when its turn is asked for
        self.standing: Standing | None = None
        self.asked_for: Target | None = None  # the URL whose scopes the turn has
        self.turn: Turn | None = None  # held for one step of the loop at most
        self.chosen: Task | None = None  # to go as soon as the turn is there, if that is at once
        self.runner: Cancellable | None = None  # what asks on its behalf
        self.begun = False  # whether that has taken its first step
        self.renewed = False  # whether a turn was given back to have the rules renewed
        self.opening = False  # whether it counts among those that wait for rules
        self.failures = 0  # times in a row that no rules could be had
        self.doomed: str | None = None  # why all its tasks are given up
        self.cleared: set[int] | None = None  # scheduled tasks about which a thread decided, by their numbers
        self.cleared_by: RuleSet | None = None  # and by these rules

    def put_unchecked(self, task: Task) -> None:
        """No rules are known that could decide about it."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def clear(self, task: Task, rules: RuleSet) -> None:
        """The rules allow the task, and it took long to find out."""
        if self.cleared is None or self.cleared_by is not rules:
            self.cleared, self.cleared_by = set(), rules
        self.cleared.add(task.number)

    @property
    def waiting(self) -> int:
        """How many tasks it has."""
        return self.scheduled + len(self.unchecked or ())
