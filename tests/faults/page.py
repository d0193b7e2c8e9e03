"""docs/faults.md as the matrix makes it: `python -m tests.faults.page` writes it."""

from collections.abc import Iterator
from pathlib import Path

from tests.faults.matrix import MATRIX
from tests.faults.row import Row, Verdict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

_START = """\
# What does polite do if a server fails?

Each line is a fault of a server, by its verdict and its reason, a member of `polite.Reason`. In brackets is the option that
changes the result. Each is a test on real sockets (`tests/faults/matrix.py`), with aiohttp's C parser and with its Python one:
the fetch ends within `FetchPolicy.timeout` and takes less than 8 MiB.
"""
_SECTIONS = {
    Verdict.PARSE: "PARSE: the rules of the file apply",
    Verdict.ALLOW: 'ALLOW: "unavailable", no restriction',
    Verdict.DENY: 'DENY: "unreachable", all is disallowed for now, unless a good copy is known',
}
_PARSERS = """
## Differences between aiohttp's parsers

aiohttp uses its Python parser if the C one was not built, or with `AIOHTTP_NO_EXTENSIONS=1`.

"""


def page() -> str:
    return (
        _START
        + "".join(_lines())
        + _PARSERS
        + "".join(f"- {row.number}: {row.why}\n" for row in MATRIX if row.why)
    )


def _lines() -> Iterator[str]:
    for verdict, title in _SECTIONS.items():
        yield f"\n## {title}\n"
        rows = [row for row in MATRIX if row.verdict is verdict]
        for reason in dict.fromkeys(row.reason for row in rows):
            yield f"\n### `{reason.name}`\n\n"
            yield from (_line(row) for row in rows if row.reason is reason)


def _line(row: Row) -> str:
    verdict, reason = row.outcome(pure=True)
    differs = "" if row.pure is None else f"; with the Python parser {verdict.name} `{reason.name}`"
    return f"- {row.number}: {row.fault}{differs}" + (f" (`{row.option}`)\n" if row.option else "\n")


if __name__ == "__main__":
    PAGE.write_text(page())
