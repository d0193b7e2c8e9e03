"""parse and Robots: what is accepted, what is bounded, and what a file says beside its rules."""

import sys
import threading

import pytest

from polite.errors import InvalidURL
from polite.robots.agent import UserAgent
from polite.robots.parse import parse


@pytest.mark.parametrize("body", [None, 1, ["User-agent: *"], bytearray(b"")])
def test_only_bytes_and_str_can_be_parsed(body):
    with pytest.raises(TypeError, match="bytes or str"):
        parse(body)


@pytest.mark.parametrize("kind", [str, str.encode])
def test_only_the_first_512_000_octets_count(kind):
    start = "User-agent: *\nDisallow: /in\n"
    filler = "#" * (512_000 - len(start) - len("\nDisallow: /on") + 1) + "\n"

    robots = parse(kind(start + filler + "Disallow: /on-the-edge\nDisallow: /beyond\n"))

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/in", "/o"]


@pytest.mark.parametrize(
    "line", ["Allow: /public", "User-agent: examplebot", "Crawl-delay: 10", "nonsense", "# Disallow: /x"]
)
def test_a_line_that_the_limit_cuts_short_never_allows_more(line: str):
    start = "User-agent: *\nDisallow: /\nCrawl-delay: 99\n"

    (group,) = parse(start + "#" * (512_000 - len(start) - len(line)) + "\n" + line).groups

    assert [rule.pattern for rule in group.rules] == ["/"]
    assert [value for _, value in group.paces] == ["99"]


def test_what_a_file_says_beside_its_rules():
    robots = parse(
        b"Host: example.com\nHost: other\nNoindex: /x\nuser-agent: *\nNOINDEX: /\xc3\xbc\nClean-param: s /\n"
    )

    assert robots.host == "example.com"
    assert robots.extensions == {"noindex": ((3, "/x"), (5, "/ü")), "clean-param": ((6, "s /"),)}
    assert parse("").host is None


def test_rules_are_bound_once_for_an_agent_and_the_memory_of_agents_is_bounded():
    robots = parse("user-agent: *\ndisallow: /a\ncontent-signal: search=no")
    first, signals = robots.rules_for("ExampleBot"), robots.signals_for("ExampleBot")

    again = robots.rules_for(UserAgent("ExampleBot")), robots.signals_for(UserAgent("ExampleBot"))
    for number in range(100):
        robots.rules_for(f"Bot{number}")
        robots.signals_for(f"Bot{number}")

    assert again == (first, signals)
    assert robots.rules_for("ExampleBot") is not first
    assert robots.signals_for("ExampleBot") is not signals


@pytest.mark.parametrize("url", ["", "example.com/a", "https://", "http://[::1", "https://exa mple.com/"])
def test_what_is_neither_url_nor_path_is_refused(url: str):
    with pytest.raises(InvalidURL):
        parse("").decide("ExampleBot", url)


@pytest.mark.parametrize("url", ["//x/y", "https://example.com//x", "HTTPS://EXAMPLE.com/a/../b c/d?e#f"])
def test_a_path_of_two_slashes_is_a_path_and_a_url_is_canonicalised(url: str):
    assert not parse("user-agent: *\ndisallow: //x\ndisallow: /b%20c/d").decide("ExampleBot", url)


def test_threads_may_ask_one_file_for_rules_at_one_time():
    agents = [f"Bot{number}" for number in range(6)]
    lines = "\n".join(f"User-agent: {agent}\nDisallow: /{agent}" for agent in agents)
    body = f"{lines}\n{'# padding' * 5_000}"
    wrong: list[object] = []

    def ask() -> None:
        ready.wait()
        try:
            wrong.extend(agent for agent in agents if robots.rules_for(agent).allows(f"/{agent}"))
        except Exception as error:
            wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            robots = parse(body)
            ready = threading.Barrier(6)
            threads = [threading.Thread(target=ask) for _ in agents]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)

    assert wrong == []
