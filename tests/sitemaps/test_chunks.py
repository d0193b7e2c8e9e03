"""Any octets give the same in any chunks."""

from hypothesis import given
from hypothesis import strategies as st

from tests.sitemaps.support import read, urlset
from tests.support import examples

PIECES = "</urlset> <url> </url> <loc>https://example.com/ </loc> <![CDATA[ ]]> &#233; <!-- -->".split()
FILES = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=9).map(
    lambda each: urlset("".join(each))
)
ENCODED = st.builds(str.encode, FILES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.just("replace"))


@examples(100, fast=20)
@given(st.binary(max_size=200) | ENCODED, st.integers(1, 64), st.data())
def test_any_octets_give_the_same_in_any_chunks_and_no_exception(data: bytes, size: int, more: st.DataObject):
    cut = data[: more.draw(st.integers(0, len(data)))]

    small, found = read(cut, size=size)
    whole, all_found = read(cut)

    assert (found, small.problem, small.kind) == (all_found, whole.problem, whole.kind)
