"""InvalidPart: why a part of a URL is invalid."""


class InvalidPart(Exception):
    """A part of a URL is invalid. `parse_url` turns it into an InvalidURL.

    Attributes:
        reason: what is wrong. It must not quote the part, which may contain credentials.
        position: 0-based, in the part.
    """

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
