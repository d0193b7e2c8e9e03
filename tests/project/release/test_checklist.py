"""A walk over a checklist tries every step that can be tried, and remembers a failure."""

import sys
from io import StringIO

import pytest

from tests.project.release.checklist import LeftOut, Step, StepFailed, run, walk


def raising(error: Exception):
    def run_step() -> str:
        raise error

    return run_step


def walked(*steps: Step) -> tuple[bool, str]:
    out = StringIO()
    return walk(steps, out), out.getvalue()


def test_each_step_has_a_line_and_its_note() -> None:
    good, printed = walked(Step("version", lambda: "1.2.3"), Step("tag", lambda: ""))

    assert good
    assert printed == "ok        version\n          1.2.3\nok        tag\n"


@pytest.mark.parametrize("error", [StepFailed("two\nlines"), OSError("two\nlines")])
def test_a_failure_is_printed_whole_and_the_walk_goes_on(error: Exception) -> None:
    good, printed = walked(Step("first", raising(error)), Step("second", lambda: ""))

    assert not good
    assert printed == "failed    first\n          two\n          lines\nok        second\n"


def test_a_step_is_not_tried_if_what_it_needs_is_not_ok() -> None:
    good, printed = walked(
        Step("build", raising(StepFailed("no"))),
        Step("files", raising(AssertionError), needs=("build",)),
        Step("try", raising(AssertionError), needs=("files",)),
    )

    assert not good
    assert "not tried files\n          needs: build\n" in printed
    assert "not tried try\n          needs: files\n" in printed


def test_a_step_that_this_machine_cannot_try_is_no_failure() -> None:
    good, printed = walked(
        Step("compile", raising(LeftOut("no compiler"))),
        Step("try", raising(AssertionError), needs=("compile",)),
    )

    assert good
    assert printed.startswith("left out  compile\n          no compiler\nnot tried try\n")


def test_an_error_of_the_checklist_itself_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        walked(Step("broken", raising(ZeroDivisionError())))


def test_a_command_returns_its_output_or_fails_with_the_end_of_it() -> None:
    assert run(sys.executable, "-c", "print(1)") == "1\n"
    assert run(sys.executable, "-c", "import sys; sys.exit(1)", statuses=(1,)) == ""

    with pytest.raises(StepFailed) as failed:
        run(sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)")
    assert str(failed.value).endswith("ended with 3:\nwhy")


def test_of_a_long_output_the_last_thirty_lines_are_shown() -> None:
    with pytest.raises(StepFailed) as failed:
        run(sys.executable, "-c", "import sys; print(*range(100), sep='\\n'); sys.exit(1)")

    assert str(failed.value).splitlines()[1:] == [str(number) for number in range(70, 100)]
