"""Single pages: a turn for each request, and what becomes of pages that are refused, fail, move or hang."""

from tests.frameworks.crawl4ai.crawls import AGENT, Hosts, config, crawling


async def test_a_page_is_fetched_in_its_turn_with_the_gates_agent(hosts: Hosts) -> None:
    async with crawling() as (crawler, gate):
        first = await crawler.arun(hosts.url("/a"), config())
        second = await crawler.arun(hosts.url("/b"), config())

    assert (first.success, first.status_code, first.url) == (True, 200, hosts.url("/a"))
    assert "the page /b" in second.markdown
    assert hosts.paths == ["/a", "/b"]
    assert hosts.short() == 0
    assert set(hosts.agents) == {AGENT}
    assert gate.counters.granted == 2
