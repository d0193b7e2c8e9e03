"""What a gate remembers of pages between two fetches: their validators, and when they are due again."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from polite.http.header_fields import Fields
from polite.log import fields, log
from polite.origin import Target
from polite.pacing.outcome import Outcome
from polite.ports import Clock, ValidatorStore
from polite.recrawl import RecrawlPolicy, ResponseFields, Validators, interval_s

# The statuses whose validators are those of the page.
_WHOLE = frozenset((200, 203, 206))
_NOT_MODIFIED = 304
# These concern the request or the moment, and say nothing of the page: what is known of it stays.
_PASSING = frozenset((408, 421, 425, 429))
_LEAST_FINAL, _LEAST_SERVER_ERROR = 200, 500
# Conditional requests whose response was not reported yet. Without its entry, a 304 changes nothing.
_MOST_REQUESTED = 10_000
# Characters. Nothing is remembered of pages with longer URLs, which are few, and often traps.
_LONGEST_URL = 2_048


@dataclass(frozen=True, slots=True)
class PageReport:
    """What a response says about the next fetch of its page.

    Attributes:
        due: Unix time when the page is worth fetching again.
        validators: What is to be remembered when the response was read; empty to forget the page, None to change nothing.
    """

    due: float
    validators: Validators | None


@dataclass(eq=False, repr=False)
class Recrawl:
    """Makes conditional requests of what a store remembers, and tells the store what was reported.

    Args:
        policy: When pages are due.
        store: Keeps the validators.
        clock: Dates the responses.
    """

    policy: RecrawlPolicy
    store: ValidatorStore
    clock: Clock
    _requested: OrderedDict[str, Validators] = field(default_factory=OrderedDict, init=False)

    async def conditional(self, target: Target) -> dict[str, str]:
        """Return the header fields of a conditional request; none if nothing is known. Raises StoreFailed."""
        known = await self.store.validators(target)
        if not known:
            return {}
        requested = self._requested
        requested[target.url] = known
        requested.move_to_end(target.url)
        if len(requested) > _MOST_REQUESTED:
            requested.popitem(last=False)
        return known.headers

    def reported(self, target: Target, outcome: Outcome, fields: Fields) -> PageReport:
        """Return what a response says about the next fetch. Nothing is remembered yet."""
        found = ResponseFields.of(fields)
        requested = self._requested.pop(target.url, None)
        if outcome.status == _NOT_MODIFIED and requested is not None:
            found = replace(found, validators=requested.renewed(found.validators))
        now = self.clock.wall()
        wait_s = interval_s(self.policy, outcome.status, found, now, retry_after_s=outcome.retry_after_s)
        remembered = _to_remember(outcome.status, found, conditional=requested is not None)
        return PageReport(now + wait_s, remembered)

    def remember(self, target: Target, report: PageReport) -> None:
        """Have the store remember, or forget, what was reported: its page was read to its end."""
        if report.validators is None or len(target.url) > _LONGEST_URL:
            return
        try:
            self.store.remember(target, report.validators)
        except Exception as error:
            # A defect of a store that a user wrote. The page will be fetched whole.
            extra = fields("validators_failed", origin=target.origin, url=target.url, error=error)
            log.exception("the store of validators failed on %s", target.url, extra=extra)


def _to_remember(status: int | None, found: ResponseFields, *, conditional: bool) -> Validators | None:
    """Return what the store remembers from now on; empty for nothing, None if that does not change."""
    if status is None or status < _LEAST_FINAL or status >= _LEAST_SERVER_ERROR or status in _PASSING:
        return None
    if status == _NOT_MODIFIED and not conditional:
        # To a request that this gate made no condition of: it says nothing of what the crawler has.
        return None
    if status not in _WHOLE and status != _NOT_MODIFIED:
        # What the crawler has is no copy of this: should the page come back, it is needed whole.
        return Validators()
    return Validators() if found.cache_control.no_store else found.validators
