"""Header fields of HTTP responses, as far as several packages read them: no I/O, no clock.

Servers may send anything. Each file reads a bounded part of a field, and returns None for what it cannot use.
"""
