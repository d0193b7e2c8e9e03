"""What hatch_build.py changes in the sources before it compiles them."""

from types import ModuleType

import pytest

SOURCE = b"""
def read(text):
    try:
        return int(text)
    except ValueError as error:
        if text == "\xc3\xa4":
            raise KeyError(
                text
            ) from None
        raise LookupError("\xc3\xa4", text) from error
"""


def read_of(source: bytes, text: str) -> LookupError:
    names: dict[str, object] = {}
    exec(compile(source, "read.py", "exec"), names)  # noqa: S102
    with pytest.raises(LookupError) as caught:
        names["read"](text)  # type: ignore[operator]
    return caught.value


def test_a_cause_becomes_an_assignment_on_the_same_lines(hooks: ModuleType) -> None:
    changed = hooks.with_causes_set(SOURCE)

    assert b" from " not in changed
    assert changed.count(b"\n") == SOURCE.count(b"\n")
    for text in ("x", "\xe4"):
        before, after = read_of(SOURCE, text), read_of(changed, text)
        assert repr(after) == repr(before)
        assert type(after.__cause__) is type(before.__cause__)
        assert after.__suppress_context__ is before.__suppress_context__ is True


def test_a_source_without_causes_stays_as_it_is(hooks: ModuleType) -> None:
    source = b"try:\n    pass\nexcept OSError:\n    raise\n"

    assert hooks.with_causes_set(source) == source
