"""polite: may I fetch this URL, and now? robots.txt and pacing for asyncio crawlers."""

from polite.compose import open_gate
from polite.errors import (
    GateClosed,
    InvalidOption,
    InvalidURL,
    InvalidUserAgent,
    Overloaded,
    PermitMisused,
    PoliteError,
    shown,
)
from polite.explanation import Explanation
from polite.gate import Gate, Permit
from polite.origin import Origin, Target
from polite.pacing.policy import Anchor, PacingPolicy
from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect, dialect
from polite.robots.lint import Finding, lint
from polite.robots.parse import Robots, parse
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.refusal import Disallowed, Unreachable
from polite.robots.rules import Decision, Rule, RuleSet
from polite.version import __version__

__all__ = [
    "CLASSIC",
    "GOOGLE",
    "GOOGLE_2010",
    "GOOGLE_2019",
    "RFC9309",
    "Anchor",
    "Decision",
    "Dialect",
    "Disallowed",
    "Explanation",
    "FetchPolicy",
    "Finding",
    "Gate",
    "GateClosed",
    "InvalidOption",
    "InvalidURL",
    "InvalidUserAgent",
    "Origin",
    "Overloaded",
    "PacingPolicy",
    "Permit",
    "PermitMisused",
    "PoliteError",
    "Reason",
    "Robots",
    "RobotsPolicy",
    "Rule",
    "RuleSet",
    "Target",
    "Unreachable",
    "UserAgent",
    "__version__",
    "dialect",
    "lint",
    "open_gate",
    "parse",
    "shown",
]
