"""Head: the request of an origin's queue that goes next."""

from typing import TYPE_CHECKING

from scrapy import Request

from polite.errors import PoliteError
from polite.frontier.permit import TaskPermit

if TYPE_CHECKING:
    from polite.integrations.scrapy.priority_queue import PoliteQueue


class Head:
    """The request of a bucket that goes next.

    Attributes:
        queue: Where it is.
        bucket: Its name there.
        request: The request.
        permit: The turn, once it came.
        error: Why there is none.
        taken: It was given to the engine or put back: nothing is to be done for it any more.
    """

    __slots__ = ("bucket", "error", "permit", "queue", "request", "taken")

    def __init__(self, queue: "PoliteQueue", bucket: str, request: Request) -> None:
        self.queue: PoliteQueue = queue
        self.bucket: str = bucket
        self.request: Request = request
        self.permit: TaskPermit | None = None
        self.error: PoliteError | None = None
        self.taken: bool = False
