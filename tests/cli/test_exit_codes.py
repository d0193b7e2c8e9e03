"""Exit statuses, on which scripts rely."""

from polite.cli.terminal import Exit


def test_what_ends_a_program_is_what_a_shell_reports():
    assert [Exit.INTERRUPTED, Exit.OUTPUT_CLOSED, Exit.TERMINATED] == [128 + 2, 128 + 13, 128 + 15]


def test_the_gravest_of_several_is_the_highest():
    answers = [Exit.ALLOWED, Exit.UNREACHABLE, Exit.DISALLOWED]

    assert max(answers) == 3
    assert [Exit.ALLOWED, Exit.DISALLOWED, Exit.USAGE, Exit.UNREACHABLE] == [0, 1, 2, 3]
