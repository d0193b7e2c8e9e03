"""Link: the links of a response, and what a hostile field costs."""

import pytest

from polite.http.header_fields import Link, links
from tests.support import calls_of

RSL = {"rel": "license", "type": "application/rsl+xml"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<https://a.example/l.xml>; rel="license"; type="application/rsl+xml"', [("https://a.example/l.xml", RSL)]),
        ("< /l.xml > ;rel=license ; TYPE = application/rsl+xml", [("/l.xml", RSL)]),
        ("<a>; rel=next,<b>;;;rel=license;type=application/rsl+xml", [("a", {"rel": "next"}), ("b", RSL)]),
        ('<a>; title="<b>; rel=license, \\"x\\""; rel=up', [("a", {"title": '<b>; rel=license, "x"', "rel": "up"})]),
        ("<a>; rel=first; REL=second", [("a", {"rel": "first"})]),
        ("<a>; crossorigin; rel=x", [("a", {"crossorigin": "", "rel": "x"})]),
        ("<a> rel=license", [("a", {})]),
        ('<a>; rel="unclosed', [("a", {"rel": ""})]),
        ("<a", []),
        ("rel=license", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_link_has_a_target_and_parameters(text: str, found: list[tuple[str, dict[str, str]]]):
    assert [(link.target, dict(link.parameters)) for link in links(text)] == found


def test_a_relation_is_one_of_several_in_any_case():
    link = Link("a", {"rel": "Next LICENSE"})

    assert link.has_relation("license")
    assert not link.has_relation("licens")
    assert not Link("a", {}).has_relation("license")


@pytest.mark.parametrize(
    "piece", ["<", "<>", "<a>;", '<a>; a="', "<a>;a=b,", '<a>;a="\\', " ", ";", '"', "<a>, "]
)
def test_a_long_field_is_read_in_part_and_in_linear_time(piece: str):
    field = piece * (1_000_000 // len(piece))

    assert calls_of(lambda: list(links(field))) <= 50_000
    assert len(list(links(field))) <= 200
