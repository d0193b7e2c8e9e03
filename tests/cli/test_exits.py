"""Exit statuses: what scripts rely on."""

from polite.cli.exits import Exit


def test_the_gravest_of_several_is_the_highest():
    answers = [Exit.ALLOWED, Exit.UNREACHABLE, Exit.DISALLOWED]

    assert max(answers) == 3
    assert [Exit.ALLOWED, Exit.DISALLOWED, Exit.USAGE, Exit.UNREACHABLE] == [0, 1, 2, 3]
