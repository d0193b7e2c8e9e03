"""What a shared crawl holds of one origin, as text: who has it, and what it waits for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from polite.cli.terminal import printable

if TYPE_CHECKING:
    from polite.stores.redis.inspector import OriginState


def origin_lines(origin: str, crawl: str, state: "OriginState") -> Iterator[str]:
    """Yield what an operator asks first: why does this site wait?"""
    yield printable(f"{origin} in crawl {crawl}")
    yield f"  tasks: {state.left} left, {state.out} of them with a worker; {state.ended} ended"
    if state.home is not None:
        yield printable(f"  home {state.home}: {_held(state)}")
        if state.delayed_s > 0:
            yield f"  delayed for {state.delayed_s:.1f} s by a response, its robots.txt, or a circuit"
    if state.postponed_s is not None:
        yield f"  robots.txt was unreachable: asked for again in {max(0.0, state.postponed_s):.1f} s"


def _held(state: "OriginState") -> str:
    if state.session is not None:
        ends = state.ends_s
        if ends is None or ends <= 0:
            return f"held by session {state.session}, which ended without a word"
        return f"held by session {state.session}, which ends in {ends:.1f} s unless renewed"
    if state.line_s is None:
        return "no session holds it, and it has no task that is ready"
    if state.line_s > 0:
        return f"in line, not to be taken for {state.line_s:.1f} s"
    return f"in line, ready for {-state.line_s:.1f} s, waits for a session with room"
