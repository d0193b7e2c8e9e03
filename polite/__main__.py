"""`python -m polite` is the `polite` command."""

import sys

from polite.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
