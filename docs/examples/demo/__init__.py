"""`./dev demo`: crawl sixteen local test hosts, and judge the crawl by the servers' log.

`sites` describes the hosts, `server` serves them on loopback addresses and logs each request, and
`dns_server` resolves their names. `crawler` is an ordinary aiohttp crawler on a polite frontier.
Afterwards `judge` compares the servers' log with each host's robots.txt, as `sites` states it by hand:
gaps, disallowed pages, pages that were missed. It shares no code with the crawler or with polite's rules.
`listeners` collects the gate's events for `table` and for the SVG timeline; `progress` shows the state of the run.
"""
