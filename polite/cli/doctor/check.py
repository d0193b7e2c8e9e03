"""Check: one result of the doctor."""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How serious a check is."""

    OK = "ok"
    # What polite cannot see, or what is an option.
    YOURS = "yours"
    WARNING = "warning"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One result.

    Attributes:
        section: The section of the best practices (draft-illyes-webbotauth-cbcp-01).
    """

    section: str
    verdict: Verdict
    text: str
