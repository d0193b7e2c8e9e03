"""Percent-encoding: which characters each part of a URL encodes (WHATWG URL, 1.3)."""

import re
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import quote, unquote_to_bytes

_Encode: TypeAlias = Callable[[str], str]

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


def _encoder(also_encoded: str) -> _Encode:
    """Return an encoder for a percent-encode set: controls, non-ASCII, and `also_encoded`.

    `%` is in no set: existing escapes, valid or not, stay as they are.
    """
    kept = "".join(c for c in _PRINTABLE if c not in also_encoded)
    to_encode = re.compile(f"[^{re.escape(kept)}]").search

    def encode(text: str) -> str:
        return quote(text, safe=kept) if to_encode(text) else text

    return encode


_QUERY = ' "#<>'
_PATH = _QUERY + "?^`{}"

encode_opaque_host: _Encode = _encoder("")
encode_fragment: _Encode = _encoder(' "<>`')
encode_query: _Encode = _encoder(_QUERY)
encode_special_query: _Encode = _encoder(_QUERY + "'")
encode_path: _Encode = _encoder(_PATH)
encode_userinfo: _Encode = _encoder(_PATH + "/:;=@[\\]|")


def decode(text: str) -> str:
    """Undo percent-encoding once.

    Octets that are not UTF-8 become U+FFFD, which no host may have.
    """
    return unquote_to_bytes(text).decode("utf-8", "replace")
