"""May I use it? What a site says of the use of its pages, beside the fetch itself.

Theory of operation. robots.txt states preferences and licences in lines of its own, which `polite.robots.signals` reads. The rest
is in responses: `indexing` reads Robots-Tag and X-Robots-Tag headers and robots meta elements, `tdm` the TDM file of a site, and
`licenses` the licences that headers name or demand. `usage` combines all of it as one value: a refusal of any source wins.
`refusal` says whether a response is the page at all, or a challenge, a block, a login or a payment demand in its place.

Nothing here permits a fetch. Content never raises an exception, and everything that is read has a limit.
"""
