"""`polite matrix`: the decisions about many URLs for many agents, as a table.

`lists` reads the agents and URLs, with the number of each line. `grid` decides about a batch of URLs for one agent after
another, since the rules of one may be megabytes. `text_table` and `formats` print a grid before the next is decided.
`options` declares the options.
"""
