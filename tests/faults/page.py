"""docs/faults.md as the matrix makes it: `python -m tests.faults.page` writes it."""

from pathlib import Path

from tests.faults.matrix import MATRIX
from tests.faults.row import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

_START = """\
# Server faults, and what polite does

Each row is a test with a server that has this fault, on real sockets, through a whole gate. The fetch ends within
`FetchPolicy.timeout`, takes less than 8 MiB of memory, and the server sees exactly the given number of hits. The table
in `tests/faults/matrix.py` produces both the tests and this page. Each row runs with aiohttp's C parser and with its
pure-Python one.

| verdict | meaning (RFC 9309, 2.3.1) |
|---|---|
| PARSE | the rules of the file apply |
| ALLOW | "unavailable": no restriction |
| DENY | "unreachable": all URLs are disallowed, and robots.txt is requested again. Meanwhile the last good copy decides |

A reason is a member of `polite.Reason`. Each failure has one, and also `elapsed_s`, `hops`, `detail` (a readable text)
and `option`, the name of the option that changes the result. `Reason.hostile` is true if the server tried to mislead
the crawler. If a row names an option, the standard leaves the case open or to the crawler, and the option is the other
choice.

| # | what the server does | verdict | reason | hits | option |
|---|---|---|---|---|---|
"""

_PARSERS = """
## Differences between aiohttp's two parsers

aiohttp has a parser in C and one in Python. It uses the latter if the former was not built, or with
`AIOHTTP_NO_EXTENSIONS=1`. These rows have two results, since polite sees only what the parser passes on.

| # | reason |
|---|---|
"""


def page() -> str:
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
