"""What fails in the status page, in the log of the crawl: once, since most failures would come back each second."""

import logging

from polite.log import fields

log: logging.Logger = logging.getLogger("polite")


class FailureLog:
    """The failures of one part of the page. The first is an error, later ones are for debugging."""

    def __init__(self) -> None:
        self._failed = False

    def note(self, where: str = "") -> None:
        """Log the exception that is being handled."""
        level = logging.DEBUG if self._failed else logging.ERROR
        log.log(level, "the status page failed%s", where, exc_info=True, extra=fields("status_page_failed"))
        self._failed = True
