"""The CPU time of a signed request, beside that of Ed25519 alone. URLs are distinct, as in a crawl."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from polite.origin import Target
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth

_ROUNDS = 31
_URLS = 200
_AGENT = "https://bot.example/.well-known/http-message-signatures-directory"
_NARROW = ("@authority", "@method", "@path", "@query")
# A signature for each request may cost this many microseconds, and this many times what its cryptography costs.
_LIMIT_US = 100.0
_LIMIT_RATIO = 1.5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        key = SigningKey.make(Path(folder) / "key.pem")
    targets = [
        Target.of(f"https://www.shop{n}.example.com/category/page-{n}.html?id={n}") for n in range(_URLS)
    ]
    bases = [f'"@authority": {target.origin.host}\n'.ljust(300, "x").encode() for target in targets]
    runners: dict[str, Callable[[], None]] = {
        "Ed25519 alone": partial(_sign_alone, key, bases),
        "WebBotAuth": partial(_sign, WebBotAuth(key, _AGENT), targets),
        "WebBotAuth, all of the request, with a nonce": partial(
            _sign, WebBotAuth(key, _AGENT, components=_NARROW, nonce=True), targets
        ),
    }
    taken = dict.fromkeys(runners, float("inf"))
    for _ in range(_ROUNDS):
        for name, run in runners.items():
            taken[name] = min(taken[name], _cpu_us(run))
    print("us of CPU per request, least of interleaved rounds")
    for name, us in taken.items():
        print(f"{name:48} {us:6.1f}  {us / taken['Ed25519 alone']:5.2f}x")
    dearest = max(taken.values())
    held = dearest / taken["Ed25519 alone"] <= _LIMIT_RATIO and dearest <= _LIMIT_US
    print(f"limits {_LIMIT_RATIO:g}x and {_LIMIT_US:g} us: {'held' if held else 'NOT HELD'}")


def _cpu_us(run: Callable[[], None]) -> float:
    started = time.process_time()
    run()
    return (time.process_time() - started) / _URLS * 1e6


def _sign_alone(key: SigningKey, bases: list[bytes]) -> None:
    for base in bases:
        key.sign(base)


def _sign(signer: WebBotAuth, targets: list[Target]) -> None:
    for number, target in enumerate(targets):
        signer.sign("GET", target, 1_750_000_000.0 + number)


if __name__ == "__main__":
    main()
