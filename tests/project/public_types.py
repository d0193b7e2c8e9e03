"""`./dev types`: have pyright list each public symbol of polite whose type it does not know. One is a failure.

mypy checks that polite is right. This checks what its users' editors and type checkers read: they infer a public name without an
annotation, each in its own way, or do not know its type.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_COMMAND = ("pyright", "--verifytypes", "polite", "--ignoreexternal", "--outputjson")
# crawl4ai does not say that it is typed (it has no py.typed), so no type that is made of its types is known.
_UNTYPED = ("polite.integrations.crawl4ai.",)


def incomplete(symbols: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason why a type is not known: those that have another reason only if there is no first one."""
    reasons = list(_reasons(symbols))
    return [line for line in reasons if "partially unknown" not in line] or reasons


def _reasons(symbols: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for symbol in symbols:
        if symbol["isExported"] and not symbol["isTypeKnown"] and not symbol["name"].startswith(_UNTYPED):
            errors = [each for each in symbol["diagnostics"] if each["severity"] == "error"]
            for reason in errors or ({"message": "its type is partially unknown"},):
                place = (
                    f"{reason['file']}:{reason['range']['start']['line'] + 1}: " if "range" in reason else ""
                )
                yield f"{place}{symbol['name']}: {reason['message']}"


def main() -> int:
    """Run pyright, which reads polite as it is installed. Return 1 if a type is not known, 2 if pyright found no package."""
    run = subprocess.run(_COMMAND, stdout=subprocess.PIPE, check=False)
    report = json.loads(run.stdout).get("typeCompleteness")
    if not report or not report["symbols"]:
        print(f"pyright has no report (status {run.returncode})", file=sys.stderr)
        return 2
    failures = incomplete(report["symbols"])
    print("\n".join([*failures, summary(report["symbols"], len(failures))]))
    return 1 if failures else 0


def summary(symbols: Sequence[Mapping[str, Any]], failures: int) -> str:
    """Return the last line: how many symbols were looked at."""
    exported = [each for each in symbols if each["isExported"]]
    left_out = sum(each["name"].startswith(_UNTYPED) and not each["isTypeKnown"] for each in exported)
    return (
        f"{len(exported)} public symbols, {failures} problem{'' if failures == 1 else 's'}; "
        f"{left_out} left out, since crawl4ai is not typed"
    )


if __name__ == "__main__":
    sys.exit(main())
