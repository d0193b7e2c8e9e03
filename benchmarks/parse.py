"""`python -m benchmarks.parse`: how fast files are parsed and their rules for one agent selected, beside other engines."""

from collections.abc import Callable
from functools import partial

from benchmarks.corpus import Case, corpus
from benchmarks.peers import Peer, decisions, peers
from benchmarks.stopwatch import race, row
from polite.robots.agent import UserAgent
from polite.robots.parse import parse

_ROUNDS = 7
_TARGET = 4.0


def main() -> None:
    """Print the table."""
    beside = peers()
    what, cases = corpus()
    texts = [case.body.decode("utf-8", "replace") for case in cases]
    octets = sum(len(case.body) for case in cases)
    runners = ours(cases)
    for peer in beside:
        if not peer.anew:
            runners[peer.name] = partial(read, peer, texts)
        runners[f"{peer.name}, and one decision"] = partial(_decide_once, peer, texts, cases)
    taken = race(runners, _ROUNDS)
    print(f"\n{what}, {octets / 1e6:.1f} MB: medians of {_ROUNDS} interleaved rounds; peers get decoded text")
    for name, seconds in taken.items():
        print(f"  {name:48}{octets / seconds / 1e6:8.1f} MB/s {seconds / len(cases) * 1e6:8.1f} us per file")
    bare, first = list(runners)[:2]
    protego = beside[0].name
    print("  " + row(f"{bare}, against {protego}", taken[protego] / taken[bare], _TARGET))
    decision = f"{protego}, and one decision"
    print(f"  {'with one decision each:':56} {taken[decision] / taken[first]:8.2f}x  (no target)")


def read(peer: Peer, texts: list[str]) -> None:
    for text in texts:
        peer.read(text)


def _decide_once(peer: Peer, texts: list[str], cases: list[Case]) -> None:
    for text, case in zip(texts, cases, strict=True):
        peer.decide(peer.read(text), decisions(case)[:1])


def ours(cases: list[Case]) -> dict[str, Callable[[], object]]:
    firsts = [(case.body, *case.decisions[0]) for case in cases]
    return {
        "parse and bind": lambda: [parse(body).rules_for(agent) for body, agent, _ in firsts],
        "parse and bind, and one decision": lambda: [
            parse(body).rules_for(agent).allows(path) for body, agent, path in firsts
        ],
        "parse and bind, index built": lambda: [
            parse(body).rules_for(agent).prepare() for body, agent, _ in firsts
        ],
        "parse and bind, sitemaps and all groups too": lambda: [
            _whole(body, agent) for body, agent, _ in firsts
        ],
    }


def _whole(body: bytes, agent: UserAgent) -> object:
    file = parse(body)
    return file.rules_for(agent), file.sitemaps, file.groups


if __name__ == "__main__":
    main()
