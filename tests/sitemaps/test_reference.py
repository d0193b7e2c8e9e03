"""Random small files, as a slow reference of xml.etree reads them."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from polite.origin import Target
from tests.sitemaps.support import read
from tests.support import examples

SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"),
    max_size=12,
)
LOCATIONS = st.builds("https://example.com/{}".format, TEXT)
DATES = st.one_of(
    st.dates().map(str),
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    TEXT.filter(str.isalpha),
)


FORMS = st.sampled_from(["escaped", "cdata", "numbers", "comment"])
BLANKS = st.sampled_from(["", " ", "\n\t"])
FIELDS = st.fixed_dictionaries(
    {
        "loc": st.none() | LOCATIONS,
        "lastmod": st.none() | DATES,
        "priority": st.none() | st.floats(0, 1).map("{:.2f}".format),
        "changefreq": st.none() | st.sampled_from(["daily", "never", "sometimes"]),
    }
)
LINKS = st.lists(LOCATIONS, max_size=2)
OTHERS = st.lists(
    st.sampled_from(
        ["<i:loc>https://example.com/no</i:loc>", "<!-- loc -->", "text", "<i:x><loc>/</loc></i:x>"]
    ),
    max_size=2,
)


@st.composite
def written(draw: st.DrawFn, text: str) -> str:
    """Text as XML has it: escaped, as CDATA, by number, with comments and blanks around."""
    match draw(FORMS):
        case "cdata" if "]]>" not in text:
            text = f"<![CDATA[{text}]]>"
        case "numbers":
            text = "".join(f"&#{ord(each)};" for each in text)
        case "comment":
            text = f"<!-- & --> {escape(text)}"
        case _:
            text = escape(text)
    return draw(BLANKS) + text


@st.composite
def items(draw: st.DrawFn, prefix: str) -> str:
    children = [
        f"<{prefix}{name}>{draw(written(text))}</{prefix}{name}>"
        for name, text in draw(FIELDS).items()
        if text is not None
    ]
    children += [f"<x:link rel='alternate' hreflang='de' href={quoteattr(url)}/>" for url in draw(LINKS)]
    children += draw(OTHERS)
    name = draw(st.sampled_from(["url", "sitemap"]))
    return f"<{prefix}{name}>{''.join(draw(st.permutations(children)))}</{prefix}{name}>"


@st.composite
def files(draw: st.DrawFn) -> bytes:
    prefix = draw(st.sampled_from(["", "s:"]))
    name = "xmlns:s" if prefix else "xmlns"
    root = draw(st.sampled_from(["urlset", "sitemapindex"]))
    body = "\n".join(draw(st.lists(items(prefix), max_size=4)))
    text = f"<{prefix}{root} {name}='{SITEMAPS}' xmlns:x='{XHTML}' xmlns:i='urn:i'>{body}</{prefix}{root}>"
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))


def reference(data: bytes) -> list[tuple[object, ...]]:
    found = []
    for item in ET.fromstring(data):  # noqa: S314 - the test's own file
        fields = {child.tag: "".join(child.itertext()).strip() for child in item}
        if not fields.get(f"{{{SITEMAPS}}}loc"):
            continue
        lastmod = date(fields.get(f"{{{SITEMAPS}}}lastmod", ""))
        common = (item.tag.rpartition("}")[2], Target.of(fields[f"{{{SITEMAPS}}}loc"]).url, lastmod)
        if common[0] == "sitemap":
            found.append(common)
            continue
        priority = fields.get(f"{{{SITEMAPS}}}priority")
        frequency = fields.get(f"{{{SITEMAPS}}}changefreq")
        links = [Target.of(link.get("href").strip()).url for link in item.findall(f"{{{XHTML}}}link")]
        known = frequency if frequency in ("daily", "never") else None
        found.append((*common, None if priority is None else float(priority), known, links))
    return found


def date(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def ours(data: bytes, size: int) -> list[tuple[object, ...]]:
    parser, found = read(data, size=size)
    assert parser.problem is None
    return [
        ("sitemap", each.url, each.lastmod)
        if type(each).__name__ == "SitemapLink"
        else (
            "url",
            each.url,
            each.lastmod,
            each.priority,
            each.changefreq and each.changefreq.value,
            [alternate.url for alternate in each.alternates],
        )
        for each in found
    ]


@examples(100, fast=5)
@given(files(), st.integers(1, 200))
def test_it_reads_what_a_slow_reference_reads(data: bytes, size: int) -> None:
    assert ours(data, size) == reference(data)


@examples(100, fast=5)
@given(st.one_of(st.binary(max_size=200), files()), st.integers(1, 64), st.data())
def test_any_octets_give_the_same_in_any_chunks_and_no_exception(data: bytes, size: int, more: st.DataObject):
    cut = data[: more.draw(st.integers(0, len(data)))]

    small, found = read(cut, size=size)
    whole, all_found = read(cut)

    assert (found, small.problem, small.kind) == (all_found, whole.problem, whole.kind)
