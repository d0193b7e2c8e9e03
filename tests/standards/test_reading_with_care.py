"""The default beside other readers: what Protego, and so Scrapy, denies is denied, or there is a reason; so is what Google reads.

The Disallow patterns of each real file are made into paths, and asked for a crawler that no file names and for those it names.
"""

import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

import protego
import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import corpus, real_files, some_or_all

GENERIC = "examplebot"
# So many patterns of a file are asked, and so many of the names in it.
MOST_PATTERNS, MOST_NAMES = 200, 12

PATTERN = re.compile(r"\s*(?:dis+al+[oa]w|diasllow)\s*:?\s*([^#]*)", re.IGNORECASE)
AGENT = re.compile(r"^(\s*user[- ]?agent\s*:?\s*)([A-Za-z0-9_-]*)([^\n\r]*)", re.IGNORECASE | re.MULTILINE)
URL_CHARACTERS = "/%:?#[]@!$&'()*+,;=-._~"

# Why polite allows what Protego denies, each as a change to the file after which Protego allows it too.
REASONS = {
    # RFC 9309, 2.2.1, and row A2: text behind a product token is ignored, as Google does. Protego compares the whole value, and
    # gives `foo` the rules for everybody where a group is for `foo bar`.
    "a name ends before other text": lambda text: AGENT.sub(
        lambda line: f"{line[1]}{line[2]}" if line[2] else line[0], text
    ),
    # Row A5: a star is no part of a name, and `*foo*` names no crawler, as at Google (D9 of the lint). Protego drops the stars.
    "a star is no part of a name": lambda text: AGENT.sub(
        lambda line: (
            f"{line[1]}nobody" if line[3][:1] == "*" and line[3][1:].strip() and not line[2] else line[0]
        ),
        text,
    ),
}

Place = tuple[bytes, str, str]


def decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


def paths(text: str) -> set[str]:
    """The Disallow patterns of a file as paths: with nothing and with something for each `*`, as written and as a URL has them."""
    rows = (PATTERN.match(row) for row in re.split(r"[\r\n]+", text))
    patterns = list(dict.fromkeys(row[1].strip() for row in rows if row and row[1].strip()))[:MOST_PATTERNS]
    written = {
        "/" + pattern.removesuffix("$").replace("*", star).removeprefix("/")
        for pattern in patterns
        for star in ("", "x")
        if "://" not in pattern[:9]
    }
    return written | {quote(path, safe=URL_CHARACTERS) for path in written}


def names(text: str) -> list[str]:
    """The crawlers that a file names, by the starts of the values that Protego knows."""
    starts = (
        re.match(r"[*]?([A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*)", line[2] + line[3])
        for line in AGENT.finditer(text)
    )
    return list(dict.fromkeys(start[1].lower() for start in starts if start))[:MOST_NAMES]


def laxer(dialect: Dialect, *, named: bool, files: int = 2_000) -> Iterator[Place]:
    """Where polite allows and Protego denies."""
    for body in corpus(files).values():
        text = decoded(body)
        robots, original = parse(body, dialect), protego.Protego.parse(text)
        for name in names(text) if named else [GENERIC]:
            rules = robots.rules_for(UserAgent(name, tokens=(name,)))
            for path in paths(text):
                if rules.allows(path) and not original.can_fetch(f"https://example.com{path}", name):
                    yield body, name, path


@cache
def changed(body: bytes, what: str) -> protego.Protego:
    return protego.Protego.parse(REASONS[what](decoded(body)))


def reason(place: Place) -> str | None:
    body, name, path = place
    url = f"https://example.com{path}"
    return next((what for what in REASONS if changed(body, what).can_fetch(url, name)), None)


@some_or_all
def test_a_crawler_that_no_file_names_is_denied_whatever_protego_denies(files: int):
    assert list(laxer(RFC9309, named=False, files=files)) == []


@pytest.mark.slow("every file of the corpus")
@real_files
def test_a_crawler_that_is_named_is_allowed_what_protego_denies_only_for_a_reason():
    found = list(laxer(RFC9309, named=True))
    reasons = {place: reason(place) for place in found}

    assert found
    assert [place for place, why in reasons.items() if why is None] == []
    assert len({body for (body, _, _), why in reasons.items() if why == "a star is no part of a name"}) == 2


# Made by hand after what real files hold: a file, and a URL that Protego denies.
BY_HAND = {
    "a raw space": ("User-agent: *\nDisallow: /sitecore modules/", "/sitecore%20modules/x"),
    "a space before a tail": ("User-agent: *\nDisallow: /*serial key", "/a-serial%20key"),
    "a placeholder": ("User-agent: *\nDisallow: /*/{{url}}", "/a/%7B%7Burl%7D%7D"),
    "a regular expression": ("User-agent: *\nDisallow: /\\d{8}/", "/%5Cd%7B8%7D/"),
    "a bar": ("User-agent: *\nDisallow: /*prefv*|*", "/?prefv=1%7C2"),
    "an angle bracket": ("User-agent: *\nDisallow: /<", "/%3Cbr%3E"),
    "two paths in a line": ("User-agent: *\nDisallow: /a/ /b/", "/a/%20/b/"),
    "misspelt": ("User-agent: *\nDisalow: /rus/legal/", "/rus/legal/"),
    "misspelt name": ("User Agent: *\t\nDisallow: /Account\t", "/Account"),
    "no colon": ("User-Agent: *\nDisallow /cgi-bin", "/cgi-bin/"),
}


@pytest.mark.parametrize(("text", "path"), BY_HAND.values(), ids=BY_HAND)
def test_files_like_the_real_ones_are_read_with_care(text: str, path: str):
    assert not protego.Protego.parse(text).can_fetch(f"https://example.com{path}", GENERIC)
    assert not parse(text).decide(GENERIC, path)
