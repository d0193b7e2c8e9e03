"""The dialects that a document's requirement is about, as parameters of a test."""

import pytest

from polite.robots.dialect import BY_NAME, CLASSIC, GOOGLE, GOOGLE_2010, Dialect

ALL = [*BY_NAME.values()]


def dialects(*chosen: Dialect) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dialect", chosen, ids=lambda dialect: dialect.name)


every_dialect = dialects(*ALL)
newer_dialects = dialects(*(each for each in ALL if each is not CLASSIC))
combining_dialects = dialects(*(each for each in ALL if each is not GOOGLE_2010))
lettered_dialects = dialects(*(each for each in ALL if each is not GOOGLE))
