"""Any octets as Content-Usage and Content-Signal: yes, no or nothing, and more text never removes a no."""

from fuzz.deadline import expect, in_time
from polite.robots.preferences import signals, strictest, usage

WORDS = (
    b"train-ai=n", b"search=y", b"bots=y", b"ai-train=no", b"ai-input=yes", b"search=yes", b",", b"=", b";",
    b"?1", b"?0", b'"', b"\\", b"(", b")", b":", b"@1", b"%", b" ", b"\t", b"*", b"-0.5", b"a;b=c", b"use=full", b"%c3%bc",
)  # fmt: skip
SEEDS = (
    b"train-ai=n, search=y;p=1, a=(b c);d",
    b"search=yes, ai-train=no",
    b'a="x\\"y", b=:AAA=:, c=?1, *=@1',
)


def one_input(data: bytes) -> None:
    """Input: the value of the line."""
    text = data.decode("latin-1")
    with in_time(data):
        used, signalled = usage(text), signals(text)
        more_used, more_signalled = usage(f"{text}, zz=n"), signals(f"{text},zz=no")
        again = signals(f"{text},{text}")
    for said in (used, signalled):
        expect(all(type(each) is bool for each in said.values()), "neither yes nor no", said)
        expect(strictest([said, said]) == said, "the same twice is more", said)
    if used:
        expect(more_used == {**used, "zz": False}, "one more member changes the others", used, more_used)
    expect(again == signalled, "the same twice is more", signalled, again)
    expect(
        more_signalled == {**signalled, "zz": False},
        "one more pair changes the others",
        signalled,
        more_signalled,
    )
