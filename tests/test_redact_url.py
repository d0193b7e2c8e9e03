"""What a URL looks like in an error or a log line: never a credential, never a control character, never long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidURL, redact_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://user:secret@host/a@b", "https://host/a@b"),
        ("https://user@host", "https://host"),
        ("https://a@b:secret@host/", "https://host/"),
        ("  \x00https://user:secret@host/", "https://host/"),
        ("ht\ttp://us\ner:sec\rret@host/", "http://host/"),
        ("http:user:secret@host/", "http:host/"),
        ("http:/\\/user:secret@host\\x", "http:/\\/host\\x"),
        ("HTTP://user:secret@host", "HTTP://host"),
        ("//user:secret@host/x", "//host/x"),
        ("\\\\user:secret@host/x", "\\\\host/x"),
        ("user:secret@host/x", "host/x"),
        ("gopher://us\\er:secret@host/", "gopher://host/"),
        ("blob:https://user:secret@host/", "host/"),
        ("\u00a0http://user:secret@host/", "\\xa0http://host/"),
        ("http://user:sec/ret@host/p", "http://host/p"),
        ("http://user:sec?ret@host/p", "http://host/p"),
        ("http://user:sec#ret@host/p", "http://host/p"),
        ("https://proxy/?to=http://user:secret@host/", "https://proxy/?to=http://host/"),
        ("mailto:user:secret@host", "host"),
        ("mailto:x@user:secret@host", "mailto:x@host"),
        ("mailto://user:secret@host", "mailto://host"),
        ("mailto:x@y?body=http://user:secret@host", "mailto:x@y?body=http://host"),
    ],
)
def test_credentials_are_not_shown(url, expected):
    assert redact_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "https://medium.com/@user/post",
        "http://[::1]:80/@x",
        "http://[::1]/@x",
        "http://host:80/@x",
        "http://host:/@x",
        "path/with:colon/@x",
        "/path@x",
        "https://evil\\@good/",
        "mailto:x@y",
        "MAILTO:x@y.test?subject=z",
    ],
)
def test_an_at_sign_outside_of_credentials_stays(url):
    assert redact_url(url) == url


def test_a_credential_longer_than_what_is_shown_is_not_shown():
    text = redact_url("http://" + "secret" * 500 + ":secret@host/")

    assert text == "http://host/"


def test_control_characters_are_spelt_out():
    assert redact_url("http://host/\x1b[31m\u202e") == "http://host/\\x1b[31m\\u202e"


def test_a_long_url_is_cut_and_its_length_told():
    text = redact_url("http://host/" + "a" * 1_000_000)

    assert text.endswith("... (1000012 characters)")
    assert len(text) < 250


def test_an_error_shows_no_credential():
    error = InvalidURL("http://user:secret@ho st/", "a space", 3)

    assert "secret" not in f"{error} {error.url} {error.args}"


@given(
    st.sampled_from(["http:", "https:", "HTTP:", "ftp:", "gopher:", ""]),
    st.text("/\\\t\n", min_size=2, max_size=4).filter(lambda s: len(s.strip("\t\n")) > 1),
    st.text("ab:@\t%\x00é", max_size=8),
    st.text("cd:.]", max_size=4),
)
def test_whatever_stands_before_the_at_sign_is_not_shown(scheme, slashes, before, after):
    assert "SECRET" not in redact_url(f"{scheme}{slashes}{before}SECRET{before}@host{after}/path")


@pytest.mark.parametrize(
    "url",
    [
        "http://bob:s3cret%40ex.com:99999/",
        "http://u:s3cret%40h:x/",
        "http://bob:s3cret%40ex.com/a@b:99999/",
        "https://bob:s3cret%40@ex.com:99999/",
    ],
)
def test_an_escaped_at_sign_does_not_show_a_password(url: str) -> None:
    assert "s3cret" not in redact_url(url)
