"""usage: what a site says of the use of a page, by which line of what; what hostile input costs; signals; and the TDM file."""

import json

import pytest
from multidict import CIMultiDict

from polite.errors import InvalidOption
from polite.robots.parse import parse
from polite.robots.signals import CleanParam, Signals, read_signal, read_values
from polite.terms.licenses import License
from polite.terms.tdm import TDM_LIMIT, TdmFile, parse_tdm_file
from polite.terms.usage import UsageSource, usage

PAGE = "https://example.com/a/page?x"
RESERVED, FREE = (
    parse_tdm_file(b'[{"location": "/a/", "tdm-reservation": %d, "tdm-policy": "/file"}]' % reserved)
    for reserved in (1, 0)
)


def by(headers=(), robots=None, **pieces):
    return usage(headers, None if robots is None else parse(robots), "ExampleBot/1.0", PAGE, **pieces)


def group(*lines: str) -> str:
    return "\n".join(("User-agent: *", *lines))


def meta(name: str, content: str) -> str:
    return f"<meta name='{name}' content='{content}'>"


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        ({"robots": group("Content-Usage: /a train-ai=n")}, "Content-Usage: /a train-ai=n (robots.txt, line 2)"),
        ({"robots": group("Content-Signal: ai-train=no")}, "Content-Signal: ai-train=no (robots.txt, line 2)"),
        ({"headers": {"content-usage": "train-ai=n"}}, "Content-Usage: train-ai=n (response header)"),
        ({"headers": {"X-Robots-Tag": "a, noai"}}, "X-Robots-Tag: a, noai (response header)"),
        ({"headers": {"Robots-Tag": "*;noai"}}, "Robots-Tag: *;noai (response header)"),
        ({"html": meta("robots", "noindex, NoAI")}, "robots: noindex, NoAI (meta element)"),
        ({"tdm_file": RESERVED}, '{"location": "/a/", "tdm-reservation": 1} (/.well-known/tdmrep.json, rule 1)'),
    ],
)  # fmt: skip
def test_each_source_alone_refuses_and_says_by_what(pieces, line):
    said = by(**pieces)
    assert (said.ai_train, said.search) == (False, None)
    assert str(said.because("ai-train")[0]) == f"ai-train: refused by {line}"


def test_one_use_has_one_name_and_an_unknown_label_is_its_own_use():
    said = by({"Content-Usage": "train-ai=y, ai-use=n, robot-poetry=n"}, group("Content-Signal: ai-train=no"))
    assert said.allows("train-ai") is said.allows("ai-train") is said.ai_train is False
    assert said.allows("ai-use") is said.ai_input is False
    assert said.allows("robot-poetry") is False
    assert list(said.by_use) == ["ai-train", "ai-input", "robot-poetry"]
    assert {each.source for each in said.because("train-ai")} == {UsageSource.ROBOTS, UsageSource.HEADER}


@pytest.mark.parametrize(
    ("label", "refused"),
    [
        ("bots", ("bots", "search", "ai-input", "ai-train")),
        ("ai", ("ai", "ai-input", "ai-train")),
        ("train-genai", ("train-genai", "ai-train")),
        ("ai-output", ("ai-output", "ai-input")),
        ("tdm", ("tdm", "ai-input", "ai-train")),
    ],
)
def test_the_refusal_of_a_wider_use_covers_narrower_ones_and_a_permission_does_not(label, refused):
    assert by({"Content-Usage": f"{label}=n"}).refused == refused
    assert list(by({"Content-Usage": f"{label}=y"}).by_use) == [label]


@pytest.mark.parametrize(
    "value", ["train-ai=n, x=", 'x="\\", train-ai=n', "TRAIN-AI=n", "train-ai=n search=y", "train-ai=n,"]
)
def test_a_void_field_permits_nothing_and_its_refusals_count(value: str):
    for said in (by({"Content-Usage": value}), by(robots=group(f"Content-Usage: {value}"))):
        assert (said.ai_train, said.search) == (False, None)
        assert said.because("ai-train")[0].careful
        assert str(said).endswith(", which is no valid statement")


@pytest.mark.parametrize("no", ["no", "NO", '"n"', "?0", "false", "0", "n/a"])
def test_a_value_that_can_only_mean_no_refuses(no: str):
    expected = None if no == "n/a" else False
    assert by({"Content-Usage": f"train-ai={no}"}).ai_train is expected
    assert by(robots=group(f"Content-Usage: /a/ train-ai={no}")).ai_train is expected
    assert by({"Content-Signal": f"ai-train={no}"}).ai_train is expected


@pytest.mark.parametrize(
    ("lines", "train", "search"),
    [
        (["train-ai=n, train-ai=y"], True, None),
        (["train-ai=n", "train-ai=y"], False, None),
        (["train-ai=y", "search=n"], True, False),
        # One malformed line voids the permissions of all.
        (["train-ai=y, search=n", "oh no"], None, False),
    ],
)
def test_each_line_of_a_header_is_a_statement(lines: list[str], train: bool | None, search: bool | None):
    for headers in (
        [("Content-Usage", line) for line in lines],
        CIMultiDict(("content-usage", line) for line in lines),
    ):
        assert (by(headers).ai_train, by(headers).search) == (train, search)


def test_a_void_line_counts_unless_a_valid_one_has_a_longer_path():
    void, valid = "Content-Usage: {} train-ai=n,", "Content-Usage: {} train-ai=y, search=n"
    assert by(robots=group(void.format("/"), valid.format("/a/"))).ai_train is True
    assert set(by(robots=group(void.format("/a/"), valid.format("/"))).refused) == {"search", "ai-train"}
    assert by(robots=group(void.format("/a/"), valid.format("/a/"))).ai_train is False
    assert by(robots=group(void.format("/b/"), valid.format("/"))).ai_train is True


def test_a_refusal_above_the_first_group_counts_if_the_group_says_nothing():
    above = "Content-Signal: ai-train=no, search=yes\n"
    assert by(robots=above + group("Disallow: /x")).refused == ("ai-train",)
    assert by(robots=above + group("Disallow: /x")).search is None
    assert by(robots=above + group("Content-Signal: /b/ search=no")).refused == ("ai-train",)
    assert by(robots=above + group("Content-Signal: search=yes")).refused == ()


def test_noimageai_is_about_images_and_about_an_image_itself():
    headers = {"X-Robots-Tag": "noimageai"}
    assert by(headers).refused == ("image-ai",)
    assert by(headers | {"Content-Type": "Image/PNG; a=b"}).refused == ("ai-input", "ai-train", "image-ai")
    assert by({"X-Robots-Tag": "noai"}).refused == ("ai-input", "ai-train", "image-ai")


@pytest.mark.parametrize(
    ("meta_value", "header", "file", "reserved", "policy"),
    [
        ("0", "1", RESERVED, False, None),
        ("1", "0", FREE, True, "https://example.com/meta"),
        (None, "0", RESERVED, False, None),
        (None, "1", FREE, True, "https://example.com/a/header"),
        (None, None, RESERVED, True, "https://example.com/file"),
        ("2", "yes", RESERVED, True, "https://example.com/meta"),
    ],
)
def test_the_page_replaces_the_headers_and_these_the_file(meta_value, header, file, reserved, policy):
    said = by(
        {} if header is None else {"tdm-reservation": header, "tdm-policy": "header"},
        html="" if meta_value is None else meta("tdm-reservation", meta_value) + meta("tdm-policy", "/meta"),
        tdm_file=file,
    )

    assert said.allows("tdm") is not reserved
    assert said.refused == (("tdm", "ai-input", "ai-train") if reserved else ())
    assert said.tdm_policy == policy


def test_the_licences_of_the_agents_group_and_of_the_response_apply():
    robots = "License: https://example.com/all.xml\nUser-agent: examplebot\nLicense: https://example.com/own.xml\nDisallow:\n"
    link = (
        '</l.xml>; rel="next License"; type="application/rsl+xml; charset=utf-8", <cc>; rel=license,'
        " <https://[>; rel=license; type=application/rsl+xml"
    )

    said = by({"Link": link}, robots)

    assert said.licenses == (
        License("https://example.com/own.xml", 3),
        License("https://example.com/l.xml"),
        License("https://[", None),
    )
    assert said.statements == ()
    assert usage((), parse(robots), "OtherBot", "/").licenses == (License("https://example.com/all.xml", 1),)
    assert usage({"link": link}, None, "OtherBot", "/").licenses == (License("/l.xml"), License("https://["))


def test_a_challenge_is_a_value_and_a_token_makes_a_header():
    challenge = by(
        [
            ("WWW-Authenticate", "Basic realm=x"),
            ("WWW-Authenticate", 'License error="e", error_description="a, b", authorization_uri="https://l.example/t"'),
        ]
    ).challenge  # fmt: skip

    assert (challenge.error, challenge.description) == ("e", "a, b")
    assert challenge.authorization_uri == "https://l.example/t"
    assert challenge.authorization("a.b-c_~+/1==") == {"Authorization": "License a.b-c_~+/1=="}
    assert by({"WWW-Authenticate": "Basic realm=License"}).challenge is by().challenge is None
    for token in ("", "a\r\nX: y", "=a", "a" * 10_000):
        with pytest.raises(InvalidOption, match="the licence token must be") as caught:
            challenge.authorization(token)
        assert not token or token not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"Content-Usage": "search=y" + ", x=y" * 100_000}, {"search", "ai-input", "ai-train"}),
        ({"Content-Signal": "search=yes" + ", x=yes" * 100_000}, {"search", "ai-input", "ai-train"}),
        ([("X-Robots-Tag", "a")] * 1_025, {"ai-input", "ai-train", "image-ai"}),
        ([("TDM-Reservation", "0")] * 1_025, {"tdm", "ai-input", "ai-train"}),
    ],
)
def test_a_header_that_is_too_long_refuses_with_care_what_its_end_could_refuse(headers, refused):
    said = by(headers)
    assert set(said.refused) == refused
    assert all(each.careful for each in said.statements)


def test_more_directives_than_are_read_hide_no_refusal():
    many = ",".join(["otherbot: a"] * 1_000)
    assert by({"X-Robots-Tag": f"{many}, examplebot: noai"}).ai_train is False
    assert by(html=meta("robots", f"{many}, noai")).ai_train is False
    assert by({"X-Robots-Tag": f"{many}, noindex"}).refused == ()
    assert by({"X-Robots-Tag": ",".join(["a"] * 999 + ["x: noai"])}).refused == ()


def test_thousands_of_labels_are_few_uses_and_lose_no_refusal_of_a_known_one():
    labels = ", ".join(f"k{number}=n" for number in range(20_000))
    robots = parse(group(f"Content-Usage: /a {labels}, train-ai=n, search=n"))
    said = usage({"TDM-Reservation": "1", "X-Robots-Tag": "noai"}, robots, "x", PAGE)
    assert len(said.by_use) == 1_005
    assert {"ai-train", "search", "tdm", "image-ai"} <= set(said.refused)


# The TDM file: which rule applies to a path, and what a file means that cannot be read.


# The example of TDMRep, 6.2.2, in our words.
FILE = b"""[
  {"location": "/directory-a/", "tdm-reservation": 1},
  {"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy": "https://example.com/policy.json"},
  {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0}
]"""


def of(*rules):
    return parse_tdm_file(json.dumps(rules).encode())


def reserved(file: TdmFile, path: str) -> bool | None:
    rule = file.at(path)
    return None if rule is None else rule.reserved


def test_a_rule_is_a_pattern_with_a_reservation_and_perhaps_a_policy():
    file = parse_tdm_file(FILE)

    assert ([rule.number for rule in file.rules], file.problem) == ([1, 2, 3], None)
    assert [
        reserved(file, path)
        for path in ("/directory-a/x?y", "/directory-b/images/x.jpg", "/directory-b/images/x.png")
    ] == [True, False, None]
    rule = file.at("/directory-b/html/")
    assert rule.policy == "https://example.com/policy.json"


@pytest.mark.parametrize(
    ("value", "reserves"),
    [
        *((value, True) for value in ("1", 1.0, True)),
        *((value, None) for value in (2, "0", 0.0, False, None, [1], {}, "yes")),
    ],
)
def test_a_value_that_can_only_mean_1_reserves_and_any_other_is_as_none(value, reserves):
    file = of({"location": "/", "tdm-reservation": value}, 5, "x", {}, [[]])
    assert reserved(file, "/") is reserves
    assert all(rule.careful for rule in file.rules)


@pytest.mark.parametrize("location", [{}, {"location": ["/a"]}, {"location": "/" + "a" * 5_000}])
def test_a_reservation_without_a_usable_location_is_for_all_paths(location):
    assert reserved(of({"tdm-reservation": 1, **location}), "/any") is True
    assert of({"tdm-reservation": 0, **location}).rules == ()


@pytest.mark.parametrize(
    "body", [b"", b"<html><p>No such page", b"5", b'"[]"', b"null", b"\xff\xfe[\0", b"<" * 9]
)
def test_a_page_for_any_path_is_no_file(body: bytes):
    file = parse_tdm_file(body + b" " * TDM_LIMIT)
    assert (file.rules, file.problem) == ((), "no list of rules")


@pytest.mark.parametrize(
    "body", [FILE[:-20], b"[" * 300_000, b"[" + b"9" * 10_000 + b"]", b"\xef\xbb\xbf [,]", FILE + b"]"]
)
def test_broken_json_reserves_everything(body: bytes):
    file = parse_tdm_file(body)
    assert (reserved(file, "/any"), file.problem) == (True, "broken JSON")


def test_a_file_beyond_the_limits_reserves_what_is_not_read():
    many = of(*[{"location": "/a", "tdm-reservation": 0}] * 10_001)
    assert many.problem == "more than 10000 rules"
    assert (reserved(many, "/a"), reserved(many, "/b")) == (False, True)
    long = parse_tdm_file(FILE + b" " * TDM_LIMIT)
    assert long.problem == f"more than {TDM_LIMIT} octets"
    assert reserved(long, "/directory-b/images/x.jpg") is True


# Signals: what a file says about the use of what is fetched, for an agent and a path.


# The example of draft-ietf-aipref-attach, 3.5, in our words; and what stands beside it there.
DRAFT = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: / train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: / train-ai=y
"""
ANY = "User-agent: *\n"
BOTH = "User-agent: a\nContent-Usage: search=n\nUser-agent: b\nDisallow: /x\n"
PATTERNS = f"{ANY}Content-Usage: /*.png$ train-ai=n\nContent-Usage:\t/%C3%BC\ttrain-ai=y\n"
NO_PATH = f"{ANY}Content-Usage: train-ai=n\nContent-Usage: / search=y\n"


@pytest.mark.parametrize(
    ("body", "agent", "path", "says"),
    [
        (DRAFT, "OtherBot", "/test", {"train-ai": False}),
        (DRAFT, "OtherBot", "https://example.com/ai-ok/test", {"train-ai": True}),
        (DRAFT, "ExampleBot/1.0", "/ai-ok/", {"train-ai": True}),
        # Only the group that binds the agent speaks, and no line above the first one.
        (BOTH, "a", "/", {"search": False}),
        (BOTH, "b", "/", {"search": False}),
        (BOTH, "c", "/", {}),
        (f"Content-Usage: search=n\n{ANY}", "a", "/", {}),
        # A line without a path holds where no other does.
        (NO_PATH, "x", "/", {"search": True}),
        (f"{ANY}Content-Usage: train-ai=n", "x", "/", {"train-ai": False}),
        (
            f"{ANY}Content-Usage: /a x=y\nContent-Usage: /a x=n\nContent-Usage: /a x=y",
            "x",
            "/a",
            {"x": False},
        ),
        # Paths are those of rules.
        (PATTERNS, "x", "/a.png", {"train-ai": False}),
        (PATTERNS, "x", "/a.png?", {}),
        (PATTERNS, "x", "/ü", {"train-ai": True}),
    ],
)
def test_the_longest_path_of_the_agents_group_counts(body: str, agent: str, path: str, says: dict[str, bool]):
    assert parse(body).signals(agent, path) == Signals({}, says)


def test_clean_params_have_parameters_and_perhaps_a_path():
    robots = parse(f"{ANY}Clean-param: a&b&&c /d*/e r\nClean-param: sid\nClean-param: & /x\nClean-param:\n")
    assert robots.clean_params == (CleanParam(("a", "b", "c"), "/d*/e", 2), CleanParam(("sid",), None, 3))


@pytest.mark.parametrize(
    ("text", "says", "values"),
    [
        ("Search = YES,AI-Input=No", {"search": True, "ai-input": False}, {}),
        ("search=yes, search=no", {"search": False}, {}),
        ("search=no, search=yes", {"search": False}, {}),
        ("search=perhaps, =no, ai-train", {}, {"search": "perhaps"}),
        ("search=yes,ai-train=no,use=reference", {"search": True, "ai-train": False}, {"use": "reference"}),
        ("Use = FULL", {}, {"use": "full"}),
        ("use=immediate, use=full", {}, {"use": "immediate"}),
        ("use=full, use=anything, use=immediate", {}, {"use": "anything"}),
        ("level=b, level=a", {}, {"level": "b"}),
    ],
)
def test_content_signal_is_pairs_of_yes_and_no_and_other_values(text, says, values):
    assert (read_signal(text), read_values(text)) == (says, values)
