"""Where a URL of the run comes from: a line of the list, perhaps through redirects. A frontier keeps it as a payload."""

from dataclasses import dataclass

from polite.origin import Target
from polite.task import Task


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a task's record says beside its own URL.

    Attributes:
        given: the line or argument as it was given; None if it is the task's URL.
        redirected_from: the URL that redirected to this one, or None.
        foreign: whether a redirect led to another origin than the list names.
    """

    given: str | None = None
    redirected_from: str | None = None
    foreign: bool = False

    @classmethod
    def of(cls, task: Task | None) -> "Provenance":
        """Return that of a task."""
        return cls() if task is None else cls.of_payload(task.payload)

    @classmethod
    def of_payload(cls, payload: object) -> "Provenance":
        """Return what `payload` kept."""
        match payload:
            case dict(kept):
                given, redirected_from = kept.get("input"), kept.get("from")
                return cls(
                    given if isinstance(given, str) else None,
                    redirected_from if isinstance(redirected_from, str) else None,
                    kept.get("foreign") is True,
                )
            case _:
                return cls()

    def redirected(self, task: Task, target: Target) -> "Provenance":
        """Return that of the target of a redirect."""
        return Provenance(
            task.url if self.given is None else self.given,
            task.url,
            self.foreign or target.origin != task.origin,
        )

    def payload(self, target: Target) -> dict[str, object] | None:
        """Return what the frontier keeps. None for most URLs of a list, since that costs memory for each."""
        kept: dict[str, object] = {}
        if self.given not in (None, target.url):
            kept["input"] = self.given
        if self.redirected_from is not None:
            kept["from"] = self.redirected_from
        if self.foreign:
            kept["foreign"] = True
        return kept or None
