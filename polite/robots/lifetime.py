"""Lifetime: what ends with the rules that own it."""


class Lifetime:
    """A target of weak references that stands for its owner."""

    __slots__ = ("__weakref__",)
