"""The path of a URL: dot segments and percent-encoding (WHATWG URL, 4.4, path state)."""

import re

from polite.url.percent import encode_path

_ONE_DOT = re.compile(r"\.|%2e", re.IGNORECASE).fullmatch
_TWO_DOTS = re.compile(r"(?:\.|%2e){2}", re.IGNORECASE).fullmatch
_MAY_HAVE_DOTS = re.compile(r"/(?:\.|%2e)", re.IGNORECASE).search


def normalise_path(path: str) -> str:
    """Resolve dot segments (`%2e` is a dot, too) and percent-encode.

    The path must start with `/`. Empty segments stay: `//a` and `/a` are different resources.
    """
    return encode_path(_without_dots(path) if _MAY_HAVE_DOTS(path) else path)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    ends_in_slash = False
    for segment in path[1:].split("/"):
        ends_in_slash = True
        if _TWO_DOTS(segment):
            del kept[-1:]
        elif not _ONE_DOT(segment):
            kept.append(segment)
            ends_in_slash = False
    return "/" + "/".join([*kept, ""] if ends_in_slash else kept)
