"""Fuzz targets, run by `./dev fuzz`, and briefly by the tests.

Each target is a module with WORDS (a dictionary for mutations), SEEDS (first inputs) and `one_input(data)`, which feeds the data
to one parser and raises AssertionError if an invariant fails: no exception, bounded time and size, consistent results.
"""
