"""How long a response says that its body is."""

from polite.http.header_fields import Fields, text_of

LENGTH_FIELDS = frozenset({"content-length"})
# Digits. A larger number exceeds any page.
_LONGEST = 18
# RFC 9110, 6.4.1 and 8.6: these have no body. The length of a 304 is that of the page it speaks for.
_WITHOUT_BODY = frozenset({204, 205, 304})
_LEAST_FINAL = 200


def body_length(status: int | None, fields: Fields) -> int:
    """Return the octets of a response's body, by its fields with names in lower case; 0 if they do not say so.

    >>> body_length(200, [("content-length", "12")]), body_length(304, [("content-length", "12")])
    (12, 0)
    """
    if status is None or status < _LEAST_FINAL or status in _WITHOUT_BODY:
        return 0
    texts = [text_of(value).strip(" \t") for name, value in fields if name in LENGTH_FIELDS]
    lengths = [int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) <= _LONGEST]
    return max(lengths, default=0)
