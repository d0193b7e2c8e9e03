"""The glance that saves parsing: it may overlook a canonical URL, it must never take another for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.url.parse import canonical_origin, canonical_path, parse_url


@pytest.mark.parametrize("host", ["example.com", "localhost", "a.b-c.d_e.f1", "1.2.com", "xn--mller-kva.eu"])
def test_a_common_origin_is_recognised(host):
    assert canonical_origin(f"https://{host}") == ("https", host)


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("/", "/"),
        ("/a/b.html?q=1&r[]={x}", "/a/b.html?q=1&r[]={x}"),
        ("/a#b c", "/a"),
        ("/?#", "/?"),
        ("/%20%2f%2", "/%20%2f%2"),
    ],
)
def test_a_common_path_is_recognised_up_to_its_fragment(tail, path):
    assert canonical_path(f"https://a{tail}", 9) == path


@given(st.text(st.sampled_from("aB1-_.:/?#@%2eE'\"{}[]^|~\\ \té"), max_size=12))
def test_what_is_taken_for_plain_is_what_the_parser_makes_of_it(text):
    origin, path = canonical_origin(f"http://{text}"), canonical_path(f"http://a/{text}", 8)

    assert (
        origin is None
        or parse_url(f"http://{text}").href == f"{origin[0]}://{origin[1]}/" == f"http://{text}/"
    )
    assert path is None or parse_url(f"http://a/{text}").path_and_query == path
