"""Errors show no credential, control character or endless URL, and survive the way between processes."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polite
from polite.errors import redact_url


def test_an_invalid_url_pickles_with_its_reason_and_position_and_shows_no_credential() -> None:
    with pytest.raises(polite.InvalidURL) as caught:
        polite.Target.of("https://user:secret@site.test:99999/")
    error = caught.value
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (again.reason, again.position, again.url) == (error.reason, error.position, error.url)
    assert str(again) == str(error)
    assert "secret" not in f"{error} {error.url} {error.args}"


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


def test_every_error_is_a_polite_error() -> None:
    errors = [getattr(polite, name) for name in polite.__all__ if isinstance(getattr(polite, name), type)]
    for error in errors:
        if issubclass(error, Exception):
            assert issubclass(error, polite.PoliteError)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://user:secret@host/a@b", "https://host/a@b"),
        ("https://a@b:secret@host/", "https://host/"),
        ("  \x00https://user:secret@host/", "https://host/"),
        ("ht\ttp://us\ner:sec\rret@host/", "http://host/"),
        ("http:user:secret@host/", "http:host/"),
        ("http:/\\/user:secret@host\\x", "http:/\\/host\\x"),
        ("\\\\user:secret@host/x", "\\\\host/x"),
        ("user:secret@host/x", "host/x"),
        ("gopher://us\\er:secret@host/", "gopher://host/"),
        ("blob:https://user:secret@host/", "host/"),
        ("\u00a0http://user:secret@host/", "\\xa0http://host/"),
        ("http://user:sec/ret@host/p", "http://host/p"),
        ("http://user:sec#ret@host/p", "http://host/p"),
        ("https://proxy/?to=http://user:secret@host/", "https://proxy/?to=http://host/"),
        ("mailto:user:secret@host", "host"),
        ("mailto://user:secret@host", "mailto://host"),
        ("mailto:x@y?body=http://user:secret@host", "mailto:x@y?body=http://host"),
        ("http://" + "secret" * 500 + ":secret@host/", "http://host/"),
        ("http://host/\x1b[31m\u202e", "http://host/\\x1b[31m\\u202e"),
        ("http://bob:s3cret%40ex.com:99999/", "http://ex.com:99999/"),
        ("http://bob:s3cret%40ex.com/a@b:99999/", "http://b:99999/"),
        ("https://bob:s3cret%40@ex.com:99999/", "https://ex.com:99999/"),
        # An at sign outside of credentials stays.
        *((url, url) for url in ("https://medium.com/@user/post", "http://[::1]:80/@x", "http://host:/@x")),
        *((url, url) for url in ("path/with:colon/@x", "https://evil\\@good/", "MAILTO:x@y.test?subject=z")),
    ],
)
def test_credentials_are_not_shown(url, expected):
    assert redact_url(url) == expected


def test_a_long_url_is_cut_and_its_length_told():
    text = redact_url("http://host/" + "a" * 1_000_000)
    assert text.endswith("... (1000012 characters)")
    assert len(text) < 250


@given(
    st.sampled_from(["http:", "https:", "HTTP:", "ftp:", "gopher:", ""]),
    st.text("/\\\t\n", min_size=2, max_size=4).filter(lambda s: len(s.strip("\t\n")) > 1),
    st.text("ab:@\t%\x00é", max_size=8),
    st.text("cd:.]", max_size=4),
)
def test_whatever_stands_before_the_at_sign_is_not_shown(scheme, slashes, before, after):
    assert "SECRET" not in redact_url(f"{scheme}{slashes}{before}SECRET{before}@host{after}/path")
