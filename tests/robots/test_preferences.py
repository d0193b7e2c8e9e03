"""What one Content-Usage or Content-Signal line says."""

import time

import pytest

from polite.robots.signals import read_signal, read_usage, read_values, strictest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("train-ai=n", {"train-ai": False}),
        ("train-ai=y, search=n", {"train-ai": True, "search": False}),
        ("*x.y_z-1=y", {"*x.y_z-1": True}),
        ('train-ai=n;because=law;n=1.5;s="a\\"b";t', {"train-ai": False}),
        ("train-ai;allow=n, train-ai=y", {"train-ai": True}),
        ("train-ai=y, train-ai=n", {"train-ai": False}),
        ('train-ai=y, train-ai, search=n, search="n"', {}),
        ('a=1, b=?1, c=:YQ==:, d=(y n;q=1), e=maybe, f=@1, g=%"x", h=yes, train-ai=n', {"train-ai": False}),
        ("train-ai=n, ", {}),
        ("train-ai=n search=y", {}),
        ("Train-AI=n", {}),
        ('train-ai=n, x="', {}),
        ("", {}),
    ],
)
def test_content_usage_is_a_dictionary_of_structured_fields(text: str, says: dict[str, bool]):
    assert read_usage(text) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("search=yes,ai-train=no,use=reference", {"use": "reference"}),
        ("Use = FULL", {"use": "full"}),
        ("use=immediate, use=full", {"use": "immediate"}),
        ("use=full, use=reference", {"use": "reference"}),
        ("use=full, use=anything, use=immediate", {"use": "anything"}),
        ("level=b, level=a, search=maybe", {"level": "b", "search": "maybe"}),
        ("use=, =full, use", {}),
    ],
)
def test_content_signal_keeps_values_that_are_neither_yes_nor_no(text: str, says: dict[str, str]):
    assert read_values(text) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("search=yes, ai-train=no", {"search": True, "ai-train": False}),
        ("Search = YES,AI-Input=No", {"search": True, "ai-input": False}),
        ("search=yes, search=no", {"search": False}),
        ("search=no, search=yes", {"search": False}),
        ("search=perhaps, =no, ai-train", {}),
        ("", {}),
    ],
)
def test_content_signal_is_pairs_of_yes_and_no(text: str, says: dict[str, bool]):
    assert read_signal(text) == says


def test_a_single_no_is_enough():
    assert strictest([{"a": True, "b": True}, {"a": False}, {"a": True}]) == {"a": False, "b": True}


@pytest.mark.parametrize(
    "piece", ["a", "a=", "a=y,", "a;", "a=(", 'a="', "a=(y ", "a;b=", "a=y ", "*", "1", ";b ", ', a="\\"']
)
def test_a_line_as_long_as_a_file_is_read_in_linear_time(piece: str):
    started = time.process_time()
    read_usage("a=" + piece * (512_000 // len(piece)))
    read_signal(piece * (512_000 // len(piece)))

    # 0.2 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 5.0
