"""The crawl as a picture shows it: each hit as the servers saw it, and what the gate told of refusals and rests."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from polite.cli.demo.request_log import Hit
from polite.cli.timeline.log_entry import Kind, Moment
from polite.cli.timeline.svg import draw
from polite.events import BackedOff, Event, OriginPostponed, Refused
from polite.origin import Origin


class Scribe:
    """A listener for `open_gate`: what is no request, and when it was. `moments` go by host, in monotonic seconds."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def __call__(self, event: Event, /) -> None:
        match event:
            case Refused(url=url):
                self._note(url, Kind.REFUSED)
            case BackedOff(origin=origin, pause_s=for_s) | OriginPostponed(origin=origin, for_s=for_s):
                self._note(origin, Kind.RESTED, for_s)
            case _:
                pass

    def _note(self, url: str, kind: Kind, for_s: float = 0.0) -> None:
        self.moments.append(Moment(time.monotonic(), Origin.of(url).host, kind, for_s))


def write(path: Path, hits: Iterable[Hit], told: Iterable[Moment]) -> None:
    """The picture into a file, its folder made if need be. Raises OSError."""
    moments = sorted([*_hits(hits), *told], key=lambda moment: moment.t)
    began = moments[0].t if moments else 0.0
    since = [Moment(each.t - began, each.origin, each.kind, each.for_s) for each in moments]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = draw(lambda: since, (), rows=len(since), title="polite demo: what the servers saw")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _hits(hits: Iterable[Hit]) -> Iterator[Moment]:
    for hit in hits:
        ordinary = Kind.PROBLEM if hit.status >= 400 else Kind.PAGE
        yield Moment(hit.at, hit.host, ordinary if hit.is_page else Kind.ROBOTS)
