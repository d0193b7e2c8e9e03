"""Header fields of HTTP, as far as several packages read or make them: no I/O, no clock.

Servers may send anything. Each file reads a bounded part of a field, and returns None for what it cannot use, or skips it.
`structured_fields` raises Malformed, since RFC 9651 voids such a field as a whole.
"""
