"""Frameworks alone and with polite, each for `python -m benchmarks.adoption`."""
