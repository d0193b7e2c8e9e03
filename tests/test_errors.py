"""Errors say what to change, and survive the way between processes."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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


REFUSAL = polite.parse("User-agent: *\nDisallow: /").decide("ExampleBot", "https://example.com/a")
UNREACHABLE = polite.RobotsUnreachable(REFUSAL, url="https://me:secret@example.com/a", retry_after_s=5.0)


@pytest.mark.parametrize("error", [polite.Disallowed(REFUSAL, url="https://example.com/a"), UNREACHABLE])
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301
def test_a_refusal_pickles_and_copies_with_its_decision_and_url(error, again):
    error.add_note("seen in a worker")

    other = again(error)

    assert (type(other), other.decision, other.args) == (type(error), REFUSAL, (REFUSAL,))
    assert vars(other) == vars(error)
    assert (str(other), repr(other)) == (str(error), repr(error))


def refused() -> None:
    raise UNREACHABLE


def test_a_pool_of_processes_survives_a_refusal():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(polite.RobotsUnreachable) as caught:
            pool.submit(refused).result()
        assert pool.submit(abs, -1).result() == 1

    assert caught.value.retry_after_s == 5.0


def test_every_error_is_a_polite_error() -> None:
    errors = [getattr(polite, name) for name in polite.__all__ if isinstance(getattr(polite, name), type)]

    for error in errors:
        if issubclass(error, Exception):
            assert issubclass(error, polite.PoliteError)


def test_a_long_url_is_shown_by_its_head() -> None:
    error = invalid("https://site.test:port/" + "x" * 100_000)

    assert len(str(error)) < 500
