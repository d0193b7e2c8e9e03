"""What the lint says about several names in one line."""

import pytest

from polite.robots.lint.lint import lint


def codes(name: str) -> list[str]:
    return [finding.code for finding in lint(f"User-agent: {name}\nDisallow: /x\n")]


@pytest.mark.parametrize(
    "names",
    [
        "Googlebot, Bingbot",
        "Googlebot,Bingbot/2.0,foo",
        "a; b",
        "a|b",
        "*, a",
        "Googlebot Bingbot",
        "Baiduspider YandexBot/3.0 (both)",
        "Download Ninja, Teleport Pro",
    ],
)
def test_several_names_in_one_line_are_found(names: str):
    assert codes(names) == ["D14"]


@pytest.mark.parametrize(
    "name",
    [
        "Googlebot",
        "Download Ninja",
        "Some bot",
        "Microsoft URL Control - 6.00",
        "ExampleBot/1.0 (+https://example.com, a; b)",
        "HTTrack [NC,OR]",
        "WebReaper v7.3 - www,example.com/webreaper",
        "foobot,",
        "foo, bar.example",
    ],
)
def test_one_name_in_many_words_is_none(name: str):
    assert codes(name) == []


@pytest.mark.parametrize(
    ("names", "read"), [("Foo, Bar", "is read as 'foo'"), ("*, Bar", "names no crawler")]
)
def test_the_finding_says_which_name_is_read(names: str, read: str):
    assert lint(f"User-agent: {names}\nDisallow: /x\n")[0].message.endswith(read)


def test_a_long_list_is_found_and_costs_a_bounded_search():
    assert codes(",".join(["a"] * 10_000)) == ["D14"]
    assert codes("x" + "bot" * 20_000) == []
