"""Errors say what to change, and survive the way between processes."""

import pickle

import pytest

import polite


def invalid(url: str) -> polite.InvalidURL:
    with pytest.raises(polite.InvalidURL) as caught:
        polite.Target.of(url)
    return caught.value


def test_an_invalid_url_pickles_with_its_reason_and_position() -> None:
    error = invalid("https://site.test:99999/")

    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert (again.reason, again.position, again.url) == (error.reason, error.position, error.url)
    assert str(again) == str(error)


def test_every_error_is_a_polite_error() -> None:
    errors = [getattr(polite, name) for name in polite.__all__ if isinstance(getattr(polite, name), type)]

    for error in errors:
        if issubclass(error, Exception):
            assert issubclass(error, polite.PoliteError)


def test_a_long_url_is_shown_by_its_head() -> None:
    error = invalid("https://site.test:port/" + "x" * 100_000)

    assert len(str(error)) < 500
