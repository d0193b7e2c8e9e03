"""Any octets as Content-Usage and Content-Signal: yes, no or nothing, and more text never removes a no."""

from polite.robots.signals import read_signal, read_usage, strictest
from tests.fuzz.deadline import expect, in_time

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
    text = data.decode("latin-1")
    with in_time(data):
        used, signalled = read_usage(text), read_signal(text)
        more_used, more_signalled = read_usage(f"{text}, zz=n"), read_signal(f"{text},zz=no")
        again = read_signal(f"{text},{text}")
    for values in (used, signalled):
        expect(all(type(each) is bool for each in values.values()), "a value is neither yes nor no", values)
        expect(strictest([values, values]) == values, "the same text twice changes the result", values)
    if used:
        expect(more_used == {**used, "zz": False}, "another member changes the others", used, more_used)
    expect(again == signalled, "the same text twice changes the result", signalled, again)
    expect(more_signalled == {**signalled, "zz": False}, "another pair changes the others", more_signalled)
