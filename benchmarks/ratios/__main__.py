"""`python -m benchmarks.ratios NAME [--real]`: measure one ratio, and print its figures as JSON on the last line."""

import json
import sys
from dataclasses import asdict

from benchmarks.ratios.catalogue import RATIOS
from benchmarks.ratios.measures import files


def main() -> None:
    name, *options = sys.argv[1:]
    ratio = RATIOS[name]
    what, cases = files(real="--real" in options)
    print(what)
    print(json.dumps(asdict(ratio.measure(cases))))


if __name__ == "__main__":
    main()
