"""robots.txt: from the octets of a file to a decision about a URL. No I/O, no clock.

Theory of operation. `parse` keeps the octets; `lines` defines which of them count, and a `Dialect`
names every point on which the documents differ. `groups` cuts the text at its user-agent lines only, selects the groups
that bind a `UserAgent`, and reads them into a `RuleSet` (`rules`). `RuleSet.decide` returns a `Decision`: the longest matching
rule wins (`pattern`, `rule_index`), and the decision names that rule and its line. `trace` explains a decision in full.

Beside the rules, a file states a pace (`polite.pace`), preferences about use and licences (`signals`; `polite.terms` combines
them with what else a site says). `exchange` is the fetch of a file as a state machine with a `result`, and a `snapshot` is what
that means now. `lint/` finds the mistakes of a file. Content never raises an exception: lines that cannot be read have no effect.

Codes such as H4 or P1 refer to the table in `docs/spec.md`.
"""
