"""parse, Robots, RuleSet, Decision, groups and UserAgent: what is accepted and bounded, what a file says, and whom it binds."""

import sys
import threading
from dataclasses import FrozenInstanceError

import pytest

from polite.errors import InvalidURL, InvalidUserAgent
from polite.pace import RequestRate, VisitTime, crawl_delay, request_rates, visit_time
from polite.robots.agent import UserAgent, names_agent
from polite.robots.decision import Rule
from polite.robots.dialect import GOOGLE, RFC9309
from polite.robots.parse import parse
from polite.robots.reason import Reason
from polite.robots.result import Unavailable, Unreachable
from polite.robots.rules import RuleSet
from tests.blocking.support import Thread


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

    def ask() -> list[str]:
        ready.wait()
        return [agent for agent in agents if robots.rules_for(agent).allows(f"/{agent}")]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            robots, ready = parse(body), threading.Barrier(6)
            threads = [Thread(ask) for _ in agents]
            assert [thread.outcome() for thread in threads] == [[]] * 6
    finally:
        sys.setswitchinterval(before)


MORNING = VisitTime(360, 525)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *[("5", 5.0), ("0", 0.0), (".5", 0.5), ("1e2", 100.0)],
        *((odd, None) for odd in ("", "-1", "inf", "1_0", "1,5", "\xb2", "1e999")),
    ],
)
def test_a_crawl_delay_is_a_finite_number_of_seconds_and_of_several_the_largest(value, seconds):
    assert crawl_delay([value]) == seconds
    assert crawl_delay(["2", value, "nan", "1"]) == max(2.0, seconds or 0.0)


@pytest.mark.parametrize(
    ("value", "rates"),
    [
        ("1/5", (RequestRate(1, 5.0),)),
        ("1/10s", (RequestRate(1, 10.0),)),
        ("100 / 2 H", (RequestRate(100, 7_200.0),)),
        ("9000/1d", (RequestRate(9_000, 86_400.0),)),
        ("1/5 600 845", (RequestRate(1, 5.0, MORNING),)),
        ("1/5 0600-0845", (RequestRate(1, 5.0, MORNING),)),
        *((odd, ()) for odd in ("", "5", "1/0", "0/5", "1/5 9-17", "-1/5", "1/5/9", "1/" + "9" * 99)),
    ],
)
def test_a_request_rate_is_requests_in_seconds_perhaps_within_a_window(value, rates):
    assert request_rates([value]) == request_rates([value] * 3) == rates


@pytest.mark.parametrize(
    ("value", "time"),
    [
        *((value, MORNING) for value in ("0600-0845", "06:00 - 08:45", "600 845")),
        ("2300-0100", VisitTime(1_380, 60)),
        ("0000-2400", VisitTime(0, 1_440)),
        *(
            (odd, None)
            for odd in ("", "0600", "9-17", "2500-0100", "0660-0700", "2401-0100", "0600-0845" + " " * 99)
        ),
    ],
)
def test_a_visit_time_is_a_window_of_the_day_and_of_several_the_shortest(value: str, time: VisitTime | None):
    assert visit_time([value]) == time
    assert visit_time(["0000-2400", value, "0600-0601"]) == VisitTime(360, 361)


def test_a_file_gives_each_agent_the_pace_of_its_own_group():
    pace = "Crawl-delay: 5\nRequest-rate: 1/9\nVisit-time: 0600-0845"
    robots = parse(f"User-agent: a\n{pace}\nUser-agent: b\nDisallow:\nUser-agent: *\nCrawl-delay: 1")
    named, others = robots.rules_for("b"), robots.rules_for("other")
    assert (named.crawl_delay, named.request_rate, named.visit_time) == (5.0, RequestRate(1, 9.0), MORNING)
    assert (others.crawl_delay, others.request_rate, others.visit_time) == (1.0, None, None)


RULES = parse("User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*c\nDisallow:\n").rules_for("ExampleBot")
URL = "https://example.com/robots.txt"


def test_a_decision_knows_its_rule_and_the_other_rules_that_match_best_first():
    decision = RULES.decide("/a/bc")
    assert (decision.rule, decision.reason, decision.path) == (Rule(True, "/a/b", 3), Reason.RULE, "/a/bc")
    assert bool(decision) is decision.allowed is True
    assert decision.overruled == (Rule(False, "/*c", 4), Rule(False, "/a", 2))
    assert RULES.decide("/c").overruled == ()


@pytest.mark.parametrize("path", ["", "a", "https://example.com/"])
@pytest.mark.parametrize("ask", [RULES.allows, RULES.decide])
def test_a_path_that_starts_with_no_slash_is_refused(ask, path: str):
    with pytest.raises(InvalidURL, match='starts with "/"'):
        ask(path)


def test_a_rules_text_is_fit_to_print_whatever_the_file_holds():
    text = str(parse(b"User-agent: *\nDisallow: /\x1b[31m\xff" + b"a" * 1_000).groups[0].rules[0])
    assert text.isprintable()
    assert len(text) < 300


def test_decisions_are_frozen_values_that_compare_by_what_they_say():
    again = parse("User-agent: *\nDisallow: /a\nAllow: /a/b\n").rules_for("OtherBot")
    other = parse("User-agent: *\n\nDisallow: /a\n").rules_for("ExampleBot")
    assert RULES.decide("/a") == again.decide("/a")
    assert RULES.decide("/a") not in (again.decide("/a/b"), other.decide("/a"), ("/a", False))
    assert len({RULES.decide("/a"), again.decide("/a"), again.decide("/a/b")}) == 2
    with pytest.raises(FrozenInstanceError):
        RULES.decide("/a").allowed = True


def test_without_a_file_all_is_allowed_and_the_decision_says_why():
    access = Unavailable(Reason.CLIENT_ERROR, URL, 404)
    decision = RuleSet.allow_all(Reason.UNAVAILABLE, access=access).decide("/a")
    assert (decision.allowed, decision.access) == (True, access)
    assert (decision.reason, decision.cause) == (Reason.UNAVAILABLE, Reason.CLIENT_ERROR)
    assert str(decision) == f"allowed: {Reason.CLIENT_ERROR.value}; {Reason.UNAVAILABLE.value}"


def test_without_an_answer_all_is_denied_but_robots_txt():
    rules = RuleSet.deny_all(Reason.UNREACHABLE, access=Unreachable(Reason.TIMEOUT, URL))
    assert not rules.allows("/")
    assert rules.decide("/").cause is Reason.TIMEOUT
    assert rules.allows("/robots.txt")
    assert not RuleSet.deny_all(Reason.UNREACHABLE, dialect=GOOGLE).allows("/robots.txt")


def test_what_stands_below_keeps_its_line():
    robots = parse("\nuser-agent: a\n#\nallow: /b # c\ncrawl-delay: 5\n\nuser-agent: a\ndisallow /d", GOOGLE)
    assert [(rule.pattern, rule.line) for rule in robots.rules_for("a").rules] == [("/b", 4), ("/d", 8)]
    assert robots.rules_for("a").crawl_delay == 5.0
    assert [group.lines for group in robots.groups] == [(2,), (7,)]
    # A group is read in pieces.
    long = parse("User-agent: *\n" + "".join(f"Disallow: /{n}\n\n" for n in range(20_000))).rules_for("x")
    assert [(rule.line, rule.pattern) for rule in long.rules] == [(2 * n + 2, f"/{n}") for n in range(20_000)]


@pytest.mark.parametrize(
    "file",
    [
        "User-agent: foobot\nDisallow-note: see wiki\nUser-agent: barbot\nDisallow: /p\n",
        "User-agent: foobot\nAllow: /a\nUser-agent-note: see wiki\nDisallow: /p\n",
        "User-agent: *\nDisallow: /p\n\nUser-agent-contact: foobot@example.com\n",
        "User-agents: foobot\nDisallow; /p\nUser-agent: barbot\nAllow: /\n",
        "User-agent: foobot\nDisallow-all: /p\n",
        "User-agent: *\nDisallow: /p\n\nUser-agent: *\nDisallow cgi-bin\n\nUser-agent: goodbot\nAllow: /p\n",
        "User-agent: foobot\nDisallow-all /x # c\nUser-agent: *\nDisallow: /p\n",
        "User-agent: foobot\nAllow: /a\nUser-agent note: see wiki\nDisallow: /p\n",
    ],
)
def test_a_field_that_only_begins_as_another_can_forbid_but_takes_no_rule_from_a_group(file: str):
    robots = parse(file)
    assert not robots.decide("foobot", "/p")
    assert not parse(robots.to_text()).decide("foobot", "/p")


@pytest.mark.parametrize(
    ("header", "tokens"),
    [
        ("ExampleBot-News/1.0 (+https://example.com/bot)", ("examplebot-news", "examplebot")),
        ("AdsBot-Google-Mobile", ("adsbot-google-mobile", "adsbot-google", "adsbot")),
        ("MJ12bot/v1.4 (http://mj12bot.com/)", ("mj12bot",)),
        ("Mozilla/5.0 (compatible; ExampleBot/1.0; +http://example.com/)", ("examplebot",)),
        ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; Compatible;bingbot/2.0) Chrome/1", ("bingbot",)),
        ("Mozilla/5.0 (compatible; )", ("mozilla",)),
        ("Example_Bot--2-x", ("example_bot--2-x", "example_bot--2", "example_bot")),
        ("7-up", ("7-up",)),
        ("Bot/1 (für alle)", ("bot",)),
    ],
)
def test_names_come_from_the_product(header: str, tokens: tuple[str, ...]):
    assert UserAgent(header).tokens == tokens


def test_explicit_names_are_kept_in_order_lower_case_and_once():
    agent = UserAgent(" (no product) ", tokens=["ExampleBot-News", "other", "OTHER"])
    assert agent.tokens == ("examplebot-news", "other")
    assert agent.names(GOOGLE) == agent.names(RFC9309) == agent.tokens
    assert len(UserAgent("a-" * 1_000 + "a").tokens) == 32
    assert {agent: 1}[UserAgent("(no product)", tokens=["ExampleBot-News", "other"])] == 1
    with pytest.raises(FrozenInstanceError):
        agent.header = "other"


@pytest.mark.parametrize(
    "header", ["", "Bot\r\nX: y", "Bot\x85", "Bot €", "B" * 2_049, None, "*", "/1.0", "1.0", "--"]
)
def test_a_header_that_cannot_be_sent_or_names_no_product_is_refused(header: str):
    with pytest.raises(InvalidUserAgent):
        UserAgent(header)


@pytest.mark.parametrize(
    "tokens", ["examplebot", [""], ["a b"], ["*"], ["a/1"], ["12"], ["ä"], [None], ["a\n"], ["a"] * 33]
)
def test_names_that_no_file_can_hold_are_refused(tokens: list[str]):
    with pytest.raises(InvalidUserAgent, match="tokens "):
        UserAgent("ExampleBot", tokens=tokens)


@pytest.mark.parametrize(
    ("value", "name", "named"),
    [
        ("bot12", "bot1", False),
        ("bot1x", "bot1", False),
        ("bot1/2", "bot1", True),
        ("bot2", "bot", True),
        ("BOT", "bot", True),
    ],
)
def test_a_name_in_a_file_ends_where_another_name_would_go_on(value: str, name: str, named: bool):
    assert names_agent(value, name) is named
