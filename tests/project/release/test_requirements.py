"""What polite needs is found through all levels, for every Python and system, and each has the version of its pin."""

import pytest

from tests.project.release.checklist import StepFailed
from tests.project.release.requirements import Installed, direct, installed, needed, pins

INSTALLED = {
    "client": Installed(
        "1.0",
        ("Parser>=2", 'old; python_version < "3.11"', 'typing_extensions; python_version < "3.13"'),
        "MIT",
    ),
    "parser": Installed("2.1", ("client", 'extra-one; extra == "speedups"'), "Apache 2.0"),
    "typing-extensions": Installed("4.0", (), ""),
    "winonly": Installed("3.0", (), ""),
}
PINS = pins("# Pins.\nClient==1.0\nparser==2.1 # newer ones fail\ntyping_extensions==4.0\n")


def test_a_package_is_found_through_another_even_in_a_circle() -> None:
    found = needed(["client>=1"], PINS, INSTALLED.__getitem__)

    assert [(each.name, each.version, each.needs) for each in found] == [
        ("client", "1.0", ("parser", "typing-extensions")),
        ("parser", "2.1", ("client",)),
        ("typing-extensions", "4.0", ()),
    ]
    assert [each.licence for each in found] == ["MIT", "Apache 2.0", ""]


def test_extras_and_pythons_that_are_not_supported_need_nothing() -> None:
    lines = ['rich; extra == "cli"', 'tomli; python_version < "3.11"', "Idna_Two>=3"]

    assert direct(lines) == ("idna-two",)


def test_a_pin_ends_where_a_comment_or_a_marker_begins() -> None:
    found = pins("# old==0.1\nOne.two==1.0# a reason\nthree==2.0;python_version < '3.13'\nfour>=3\n")

    assert found == {"one-two": "1.0", "three": "2.0"}


@pytest.mark.parametrize(
    "marker", ['sys_platform == "win32"', 'sys_platform == "darwin"', 'python_version >= "3.14"']
)
def test_what_another_system_or_python_needs_is_needed(marker: str) -> None:
    assert direct([f"winonly; {marker}"]) == ("winonly",)


def test_a_package_without_a_pin_is_named_with_the_line_to_add() -> None:
    with pytest.raises(StepFailed, match=r"no pin for winonly, which polite needs: add winonly==3\.0"):
        needed(["winonly"], PINS, INSTALLED.__getitem__)


def test_another_version_than_the_pin_is_refused() -> None:
    with pytest.raises(StepFailed, match=r"has client==1\.1, and 1\.0 is installed"):
        needed(["client"], {**PINS, "client": "1.1"}, INSTALLED.__getitem__)


def test_what_is_installed_says_its_version_and_needs() -> None:
    assert installed("aiohttp").requires

    with pytest.raises(
        StepFailed, match=r"^no-such-package-at-all is needed .* add it to the group `release`"
    ):
        installed("no-such-package-at-all")
