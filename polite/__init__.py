"""polite: may I fetch this URL, and now? robots.txt and pacing for asyncio crawlers.

Ids in docstrings, such as (T4), name requirements of docs/spec.md.
"""

from polite import blocking, schedulers, sitemaps, status, throttles
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.errors import (
    GateClosed,
    InvalidOption,
    InvalidURL,
    InvalidUserAgent,
    OriginDeclined,
    Overloaded,
    PermitMisused,
    PoliteError,
    StoreEmptied,
    StoreFailed,
    TurnLost,
    redact_url,
)
from polite.frontier.checked_scheduler import SchedulerFailed
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.frontier.in_flight import TaskPermit
from polite.frontier.progress import End, TaskOutcome
from polite.gate.explanation import Explanation
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.session import gate_of, open_session
from polite.origin import Origin, Target
from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import CustomScope, ScopeLimit, Scopes
from polite.recrawl import RecrawlPolicy
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable, Rule
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect, dialect
from polite.robots.lint.checks import Finding
from polite.robots.lint.lint import lint
from polite.robots.parse import Robots, parse
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet
from polite.robots.serialization import CorruptRobots
from polite.robots.signals import CleanParam, Signals, SignalSet
from polite.robots.trace import DecisionTrace, Match, Sensitivity
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth
from polite.task import Admission, Task
from polite.terms.indexing import ImagePreview, Indexing, indexing
from polite.terms.licenses import License, LicenseChallenge
from polite.terms.refusal import Refusal, RefusalKind, refusal
from polite.terms.tdm import TdmFile, TdmRule, parse_tdm_file
from polite.terms.usage import Usage, UsageSource, UsageStatement, usage
from polite.transports.address_guard import guarded_connector
from polite.version import __compiled__, __version__

__all__ = [
    "CLASSIC", "GOOGLE", "GOOGLE_2010", "GOOGLE_2019", "RFC9309", "Admission", "Anchor", "CleanParam",
    "CorruptRobots", "CustomScope", "Decision", "DecisionTrace", "Dialect", "Disallowed", "End",
    "Explanation", "FetchPolicy", "Finding", "Frontier", "FrontierClosed", "Gate", "GateClosed",
    "ImagePreview", "Indexing", "InvalidOption", "InvalidURL", "InvalidUserAgent", "License",
    "LicenseChallenge", "Match", "Origin", "OriginDeclined", "Overloaded", "PacingPolicy", "Permit",
    "PermitMisused", "PoliteError", "Reason", "RecrawlPolicy", "Refusal", "RefusalKind", "Robots",
    "RobotsPolicy", "RobotsUnreachable", "Rule", "RuleSet", "SchedulerFailed", "ScopeLimit", "Scopes",
    "Sensitivity", "SignalSet", "Signals", "SigningKey", "StoreEmptied", "StoreFailed", "Target", "Task",
    "TaskOutcome", "TaskPermit", "TdmFile", "TdmRule", "TurnLost", "Usage", "UsageSource", "UsageStatement",
    "UserAgent", "WebBotAuth", "__compiled__", "__version__", "blocking", "dialect", "gate_of",
    "guarded_connector", "indexing", "lint", "open_frontier", "open_gate", "open_session", "parse",
    "parse_tdm_file", "redact_url", "refusal", "schedulers", "sitemaps", "status", "throttles", "usage",
]  # fmt: skip
