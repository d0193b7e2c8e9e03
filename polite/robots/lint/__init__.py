"""The mistakes of a robots.txt: each a `Finding` with its code, line, message and hint.

Theory of operation. `lint.lint` runs the checks in order of their scope: the file as a whole (encoding, HTML, binary data,
size), then each line as the parser reads it (fields, groups, names of crawlers, paths of rules, other values), then each group
(rules that never decide). `checks.CODES` lists the codes. X1 to X8 come from the Rambler document; D1 to D20 are
mistakes in real files.

A path that stands for all paths of a rule shows whether the rule is shadowed: the rule set decides about that path.
Every check has a limit, so a hostile file does not take long.
"""
