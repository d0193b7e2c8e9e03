"""Leaves out the tests of frameworks that are not installed."""

from tests.frameworks.installed import LEFT_OUT

collect_ignore = list(LEFT_OUT)
