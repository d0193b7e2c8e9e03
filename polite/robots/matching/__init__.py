"""Which rule of a rule set decides about a path: the longest match (RFC 9309, 2.2.2).

Theory of operation. Rules and paths are brought to one normal form (`normal_form`), and each rule's path becomes a
pattern: a literal head and the pieces between its wildcards (`pattern`). `ranking` sorts the rules by precedence; a
rule's position in that order is its rank, 0 for the strongest. To decide is to find the smallest rank that
matches.

`prefilter` decides most paths: it knows a few literal starts and needles, and no Disallow can match without
one. `rule_index` decides the others. It finds literal rules by binary search over their heads. Rules with
wildcards are filed at their heads under a keyword that every matching path contains (`keyword_index`). Rules that
keywords do not tell apart run together in one bit-parallel Shift-And automaton (`shift_and`; Baeza-Yates and
Gonnet, 1992).

Every step is linear in the length of the path, whatever the rules contain. `docs/explanation/matching.md` tells
more.
"""
