"""The URL of a target as aiohttp takes it: the only place that makes one."""

from typing import TYPE_CHECKING

from polite.origin import Target

if TYPE_CHECKING:
    from yarl import URL


def request_url(target: Target) -> "URL":
    """Return the URL that aiohttp sends letter by letter. It would rewrite a str: `%3A` to `:`, and `/a?` to `/a`."""
    # Imported here, so that `import polite` loads no HTTP client.
    from yarl import URL

    if target.path.find("?") == len(target.path) - 1:
        # yarl loses an empty query, unless it is a part of the path.
        return URL(target.origin.text, encoded=True).with_path(target.path, encoded=True)
    return URL(target.url, encoded=True)
