"""Budgets of origins, a long Crawl-delay and statuses that back off, as options of polite fetch."""

import pytest

from polite.cli.main import main
from tests.cli.fetch.conftest import drop


def test_the_other_pages_of_an_origin_whose_budget_is_spent_are_given_up(site):
    urls = [f"/{number}" for number in range(6)]

    assert site.run("--max-pages", "2", *urls) == 3

    outcomes = [site.records[url]["outcome"] for url in urls]
    assert outcomes == ["fetched"] * 2 + ["given up"] * 4
    assert site.records["/5"]["code"] == "MAX_PAGES"
    assert site.records["/5"]["detail"] == "--max-pages=2: so many pages were requested"
    assert len(site.paths) == 2


def test_octets_of_pages_count_as_sent(site):
    for number in range(5):
        site.pages[f"/{number}"] = [{"text": "x" * 100}]

    assert site.run("--max-origin-bytes", "150", *(f"/{number}" for number in range(5))) == 3

    assert len(site.paths) == 2
    assert site.records["/4"]["detail"] == "--max-origin-bytes=150: 200 octets came"


def test_a_dead_origin_is_given_up(site):
    site.pages.update({f"/{number}": [drop] for number in range(10)})

    assert site.run("--max-failures", "4", *(f"/{number}" for number in range(10))) == 3

    assert len(site.paths) == 4
    details = {record["code"]: record["detail"] for record in site.records.values()}
    assert details["MAX_FAILURES"] == "--max-failures=4: so many requests failed in a row"


@pytest.mark.parametrize(("rule", "delay_s"), [("cap", 300), ("obey", 400)])
def test_a_long_crawl_delay_is_capped_or_obeyed(rule, delay_s, site):
    site.pages["/robots.txt"] = [{"text": "User-agent: *\nCrawl-delay: 400\n"}]

    assert site.run("--long-delay", rule, "/a", "/b") == 0

    assert site.times[1] - site.times[0] == pytest.approx(delay_s, abs=1)


def test_a_long_crawl_delay_may_be_refused(site):
    site.pages["/robots.txt"] = [{"text": "User-agent: *\nCrawl-delay: 400\n"}]

    assert site.run("--long-delay", "refuse", "/a") == 3

    assert site.paths == []
    assert site.records["/a"]["code"] == "LONG_DELAY"
    assert "robots.txt requests 400 s between requests" in site.records["/a"]["detail"]
    assert "--long-delay" in site.records["/a"]["detail"]


def test_a_status_that_is_named_backs_the_origin_off(site):
    site.pages["/a"] = [{"status": 403}]

    assert site.run("--back-off-on", "403", "/a", "/b") == 0

    assert site.times[1] - site.times[0] >= 10


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--max-pages", "0"), "--max-pages must be an integer from 1 to 1000000000000000, got 0"),
        (("--max-failures", "many"), "--max-failures must be an integer"),
        (
            ("--back-off-on", "402"),
            "--back-off-on must be a set of statuses from 400 to 599, without 401 and 402",
        ),
        (("--back-off-on", "200"), "--back-off-on must be an integer from 400 to 599, got 200"),
        (("--long-delay", "ignore"), "--long-delay: invalid choice"),
    ],
)
def test_options_are_checked(arguments, says, capsys):
    with pytest.raises(SystemExit):
        main(["fetch", "--agent", "TestBot/1.0", *arguments, "https://example.com/"])

    assert says in capsys.readouterr().err
