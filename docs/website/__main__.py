"""`python -m docs.website`: build the documentation site, check it, and serve it."""

import argparse
import sys
import time
from pathlib import Path

from docs.website.builder import Site
from docs.website.navigation import NavigationError
from docs.website.server import open_server, serve

_ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return 1 if the site has a fault and is not served."""
    options = argparse.ArgumentParser(
        prog="./dev docs", description="Build the documentation site and serve it."
    )
    options.add_argument(
        "--build-only", action="store_true", help="build and check, do not serve; 1 if there is a fault"
    )
    options.add_argument(
        "--port", type=int, default=8000, help="port on 127.0.0.1; 0 is a free one (default: %(default)s)"
    )
    options.add_argument(
        "--out", type=Path, default=_ROOT / "out" / "site", help="folder (default: out/site)"
    )
    chosen = options.parse_args()
    site = Site(_ROOT, chosen.out.resolve())
    if chosen.build_only:
        return 0 if _build(site) else 1
    try:
        server = open_server(site.out, chosen.port)
    except (OSError, OverflowError) as error:
        options.error(f"--port {chosen.port}: {error}; choose another, or 0 for a free one")
    with server:
        serve(server, _ROOT, lambda files: _build(site, anew=not _only_pages(files)))
    return 0


def _only_pages(files: set[Path]) -> bool:
    return all(file.suffix == ".md" for file in files)


def _build(site: Site, *, anew: bool = True) -> bool:
    """Build the site and say how it went."""
    began = time.perf_counter()
    try:
        found = site.build(anew=anew)
    except NavigationError as error:
        found = [str(error)]
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        print(
            f"{len(found)} {'fault' if len(found) == 1 else 'faults'} in the site",
            file=sys.stderr,
            flush=True,
        )
        return False
    count = len(list(site.out.rglob("*.html")))
    print(f"{site.out}: {count} pages in {time.perf_counter() - began:.1f} s, no fault", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
