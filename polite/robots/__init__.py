"""robots.txt: from the octets of a file to a decision about a URL. No I/O, no clock.

Theory of operation. `parse` keeps the octets; `lines` and `encoding` define which of them count, and a `Dialect`
names every point on which the documents differ. `sections` cuts the text at its user-agent lines only. `groups`
selects the groups that bind a `UserAgent` and reads them into a `RuleSet`. `RuleSet.decide` returns a `Decision`:
the longest matching rule wins (`matching/`), and the decision names that rule and its line. `trace` explains a
decision in full.

Beside the rules, a file states a pace (`pace_fields`), preferences about use and licences (`signals`); `indexing`
reads what a response says about indexing. `usage` combines all that a site says of the use of a page. `fetching/` is
the fetch of a file as a state machine, and what its result means now. `lint/` finds the mistakes of a file. Content
never raises an exception: lines that cannot be read have no effect.

Codes such as H4 or P1 refer to the table in `docs/spec.md`.
"""
