"""A small model of what step.lua does with sessions and homes, on the loop's time. Tasks have no part in it."""

import asyncio
import math
from dataclasses import dataclass, field

from tests.stores.redis.scripted_link import Request


@dataclass
class _Row:
    owner: str | None = None
    fence: int = 0
    since: float | None = None
    free_at: float = 0.0
    clean: bool = True
    state: str = ""


@dataclass
class HomesServer:
    """Owners and fences, the line, and who wants what.

    Attributes:
        line: Homes with tasks that have no owner.
        tasks: Homes that go back in line when they are left.
    """

    line: list[str] = field(default_factory=list)
    tasks: set[str] = field(default_factory=set)
    homes: dict[str, _Row] = field(default_factory=dict)
    sessions: dict[str, float] = field(default_factory=dict)
    wants: dict[str, set[str]] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)
    fence: int = 0
    starved_at: float = -math.inf

    def answer(self, request: Request) -> Request:
        session, now = request["session"], asyncio.get_running_loop().time()
        if request["seq"] <= self.seqs.get(session, 0):
            return {"err": "old"}
        self.seqs[session] = request["seq"]
        if not request["first"] and session not in self.sessions:
            return {"lost": True}
        self.sessions[session] = now + request["lease"] / 1e6
        self._end_sessions(session, now)
        self._leave(request, now)
        gone = self._mine(request, now)
        taken = [
            self._give(name, session, now) for name in request.get("takes", []) if self._free(name, session)
        ]
        recalls = sorted(self.wants.pop(session, set()))
        return {"gone": gone, "taken": taken, "recalls": recalls} | self._pick(request, now)

    def held_by(self, session: str) -> set[str]:
        return {name for name, row in self.homes.items() if row.owner == session}

    def _end_sessions(self, caller: str, now: float) -> None:
        for session, end in list(self.sessions.items()):
            if end <= now and session != caller:
                del self.sessions[session]
                for name in self.held_by(session):
                    self._free_home(name, since=end, clean=False)

    def _free_home(self, name: str, *, since: float, clean: bool) -> None:
        row = self.homes[name]
        row.owner, row.since, row.clean = None, since, clean
        if name in self.tasks:
            self.line.append(name)

    def _leave(self, request: Request, now: float) -> None:
        for name, fence, rest, state in request.get("leaves", []):
            row = self.homes[name]
            if row.owner == request["session"] and row.fence == fence:
                row.free_at, row.state = now + rest / 1e6, state or ""
                self._free_home(name, since=now, clean=True)
        if request["bye"] and not self.held_by(request["session"]):
            del self.sessions[request["session"]]

    def _mine(self, request: Request, now: float) -> list[str]:
        if "mine" not in request:
            return []
        named = {name for name, fence in request["mine"] if self.homes[name].fence == fence}
        owned = self.held_by(request["session"])
        for name in owned - named:
            self._free_home(name, since=now, clean=True)
        return [name for name, _ in request["mine"] if name not in owned & named]

    def _free(self, name: str, session: str) -> bool:
        owner = self.homes.setdefault(name, _Row()).owner
        if owner is not None and owner != session:
            self.wants.setdefault(owner, set()).add(name)
        return owner is None

    def _give(self, name: str, session: str, now: float) -> list[object]:
        row = self.homes.setdefault(name, _Row())
        self.fence += 1
        row.owner, row.fence = session, self.fence
        if name in self.line:
            self.line.remove(name)
        age = -1 if row.since is None else (now - row.since) * 1e6
        return [name, row.fence, age, row.clean, max(0.0, row.free_at - now) * 1e6, row.state]

    def _pick(self, request: Request, now: float) -> Request:
        held, live = len(self.held_by(request["session"])), len(self.sessions)
        fair = math.ceil(
            (len(self.line) + sum(len(self.held_by(each)) for each in self.sessions)) / max(1, live)
        )
        names = [] if request["bye"] else self.line[: max(0, min(request["room"], fair - held))]
        picked = [[*self._give(name, request["session"], now), [[f"https://{name}", []]]] for name in names]
        if request["room"] > len(picked) and held + len(picked) < fair and not self.line:
            self.starved_at = now
        return {"picked": picked, "fair": fair, "live": live, "starving": now - self.starved_at < 1.5}
