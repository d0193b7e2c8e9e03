"""Any octets as headers, robots.txt lines, a page and a TDM file: no exception, and more of them never permit a refused use."""

from polite.robots.parse import parse
from polite.terms.tdm import parse_tdm_file
from polite.terms.usage import usage
from tests.fuzz.deadline import expect, in_time

NAMES = "Content-Usage Content-Signal X-Robots-Tag Robots-Tag Link WWW-Authenticate Content-Type".split()
WORDS = (
    b"train-ai=n", b"train-ai=y", b"ai-use=no", b"search=y", b"ai-train=no", b"use=full", b"noai", b"noimageai", b"bots=n",
    b", ", b"=", b";", b'"', b"\\", b'%"', b"(", b"?0", b'<a>; rel="license"; type="application/rsl+xml"',
    b"License ", b'error="x"', b"image/png", b"\0", b"\n", b'<meta name="robots" content="',
    b'<meta name="tdm-reservation" content="1">', b'[{"location": "/", "tdm-reservation": 1}]', b"1", b"0", b"/a ", b"\xff",
)  # fmt: skip
SEEDS = (
    b"train-ai=n, search=y\nai-train=no, use=reference\nnoai\n</l.xml>; rel=license; type=application/rsl+xml\nLicense error=x\0",
    b'search=y\0/ train-ai=no\n/a ai-use=n\0<meta name="robots" content="noai">\0[{"location": "/a", "tdm-reservation": 0}]',
    b'x="\0\0\0[{',
)


def one_input(data: bytes) -> None:
    """Input: a header per line, then values of Content-Usage lines, a page and a TDM file, separated by NULs."""
    heads, lines, page, file = (*data.split(b"\0", 3), b"", b"", b"")[:4]
    pairs = list(zip(NAMES * 20, heads.decode("latin-1").split("\n"), strict=False))
    body = b"User-agent: *\n" + b"".join(b"Content-Usage: %b\n" % line for line in lines.split(b"\n"))
    with in_time(data):
        robots, tdm_file = parse(body), parse_tdm_file(file)
        said = usage(pairs, robots, "a-bot", "/a", html=page, tdm_file=tdm_file)
        str(said)
        more = usage(
            [*pairs, ("Content-Usage", "zz=n"), ("X-Robots-Tag", "noimageai"), ("TDM-Reservation", "1")],
            robots, "a-bot", "/a", html=page, tdm_file=tdm_file,
        )  # fmt: skip
        parts = (usage(pairs, None, "a-bot", "/a"), usage((), robots, "a-bot", "/a"))
    expect({"zz", "image-ai"} <= set(more.refused), "a refusal at the end is lost", more)
    expect(set(said.refused) <= set(more.refused), "more headers permit a refused use", said, more)
    for part in parts:
        expect(set(part.refused) <= set(said.refused), "another source permits a refused use", part, said)
    for statement in said.statements:
        expect(not (statement.careful and statement.allowed), "a careful reading permits a use", statement)
        expect(statement.line is None or statement.line >= 1, "a line that is none", statement)
