"""ShiftAnd: what it finds is what each rule alone would have said."""

from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import GOOGLE, RFC9309
from polite.robots.pattern import grammar, shape_matches
from polite.robots.rule_index import ShiftAnd

TAILS = st.lists(st.text(alphabet="abc*$%2A4/\1\2", min_size=1, max_size=9), min_size=1, max_size=12)
PATHS = st.text(alphabet="aabbcc*$%2A4/\1\2\n\x7f", max_size=14)


@given(tails=TAILS, path=PATHS)
def test_the_first_that_matches_is_found(tails: list[str], path: str) -> None:
    for dialect in (RFC9309, GOOGLE):
        grammar_ = grammar(dialect)
        normals = grammar_.normals([f"/x*{tail}" for tail in tails])
        asked = grammar_.path(f"/x{path}")

        automaton = ShiftAnd([each[3:] for each in normals], plain_specials=dialect.specials_equal_escapes)

        matching = (place for place, each in enumerate(normals) if shape_matches(grammar_.shape(each), asked))
        assert automaton.strongest(asked, 2) == next(matching, None)


def test_an_end_of_line_in_a_path_leads_into_no_rule() -> None:
    automaton = ShiftAnd(["a$", "b"], plain_specials=True)

    assert automaton.strongest("/a\n", 1) is None
    assert automaton.strongest("/a\nb", 1) == 1
