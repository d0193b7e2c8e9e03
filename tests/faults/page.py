"""docs/faults.md as the matrix makes it: `python -m tests.faults.page` writes it."""

from pathlib import Path

from tests.faults.matrix import MATRIX
from tests.faults.row import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

_START = """\
# What servers do wrong, and what it comes to

Each row is a test: a server that lies in just this way, on real sockets, through a whole gate. The answer is there within
`FetchPolicy.timeout`, a heavy one is held in less than 8 MiB, and the server sees exactly so many hits. Both the tests and this
page are made from the table in `tests/faults/matrix.py`; each row is run with aiohttp's C parser and with its pure-Python one.

| verdict | what it means (RFC 9309, 2.3.1) |
|---|---|
| PARSE | the rules of the file apply |
| ALLOW | "unavailable": no restriction |
| DENY | "unreachable": all is disallowed for now, and asked again; meanwhile the last good copy decides |

A reason is a member of `polite.Reason`. Each failure carries it, with `elapsed_s`, `hops`, `detail` for people, and `option`, which
names what changes it. `Reason.hostile` is true where somebody tried to lead the crawler astray. Where a row names an option, the
standard leaves the matter open or to the crawler: the option is the other choice.

| # | what the server does | verdict | reason | hits | option |
|---|---|---|---|---|---|
"""


_PARSERS = """
## Where aiohttp's two parsers differ

aiohttp has a parser in C and one in Python, which it uses where the first was not built, or with `AIOHTTP_NO_EXTENSIONS=1`. What
they hand on is what polite sees, so that these rows have two outcomes.

| # | why |
|---|---|
"""


def page() -> str:
    """The whole page."""
    return _START + "".join(map(_line, MATRIX)) + _PARSERS + "".join(map(_reason, MATRIX))


def _line(row: Row) -> str:
    verdict, reason = row.outcome(pure=True)
    said, because = row.verdict.name, f"`{row.reason.name}`"
    if row.pure is not None:
        because += f"; with the pure-Python parser {verdict.name} `{reason.name}`"
    fault = row.fault.replace("|", "\\|")
    option = f"`{row.option}`" if row.option else ""
    return f"| {row.number} | {fault} | {said} | {because} | {row.hits} | {option} |\n"


def _reason(row: Row) -> str:
    return f"| {row.number} | {row.why} |\n" if row.why else ""


if __name__ == "__main__":
    PAGE.write_text(page())
