"""Why a part of a URL was refused, before anyone knows where in the whole URL that part stood."""


class InvalidPart(Exception):
    """Raised by the readers of parts; `parse_url` turns it into an InvalidURL.

    `reason` must not quote the part: it may hold credentials. `position` is 0-based, in the part as it was
    handed over.
    """

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
