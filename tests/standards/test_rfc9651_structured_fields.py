"""Structured fields (RFC 9651): every type, what is well formed, and what makes all of a field void."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from polite.http.structured_fields import (
    Date,
    DisplayString,
    InnerList,
    Item,
    Malformed,
    Token,
    parse_dictionary,
    parse_item,
    parse_list,
)
from tests.support import calls_of

PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
KEY_STARTS = "abcdefghijklmnopqrstuvwxyz*"
KEY_CHARACTERS = KEY_STARTS + "0123456789_-."
TOKEN_STARTS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ*"
TOKEN_CHARACTERS = TOKEN_STARTS + "0123456789:/!#$%&'+-.^_`|~"

BARE_ITEMS = [
    ("0", 0),
    ("42", 42),
    ("-42", -42),
    ("007", 7),
    ("999999999999999", 999_999_999_999_999),
    ("-999999999999999", -999_999_999_999_999),
    ("1.5", Decimal("1.5")),
    ("-0.0", Decimal(0)),
    ("999999999999.999", Decimal("999999999999.999")),
    ("-999999999999.9", Decimal("-999999999999.9")),
    ('""', ""),
    ('"a b"', "a b"),
    (r'"\"\\"', '"\\'),
    ('"%22,;=()"', "%22,;=()"),
    ("A", Token("A")),
    ("*", Token("*")),
    ("text/html:8", Token("text/html:8")),
    ("a!#$%&'*+-.^_`|~:/9Z", Token("a!#$%&'*+-.^_`|~:/9Z")),
    (":YQ==:", b"a"),
    (":YWJj:", b"abc"),
    (":+/+/:", b"\xfb\xff\xbf"),
    (":YQ:", b"a"),
    (":YR==:", b"a"),
    ("?0", False),
    ("?1", True),
    ("@0", Date(0)),
    ("@1659578233", Date(1_659_578_233)),
    ("@253402214400", Date(253_402_214_400)),
    ('%""', DisplayString("")),
    ('%"a b"', DisplayString("a b")),
    (r'%"a\b"', DisplayString("a\\b")),
    ('%"%22%25"', DisplayString('"%')),
    ('%"f%c3%bc%f0%9f%98%80"', DisplayString("fü😀")),
    ('%"%ef%bb%bf"', DisplayString("\ufeff")),
]

NO_BARE_ITEMS = [
    *["", "-", "--1", "+1", "- 1", "1e3", "0x1", "1_0", "١", "1234567890123456", "-1234567890123456"],
    *["1.", "-1.", ".5", "-.5", "1.2345", "1.2.3", "1..2", "1234567890123.1", "123456789012345.", "1,5"],
    *['"', '"a', 'a"', "'a'", r'"\a"', r'"\"', '"\\', '"\t"', '"\n"', '"\x7f"', '"\0"', '"é"', '"a""b"'],
    *["é", "=", "/a", ":a", "a b", "a,b", "a(b", "a)", "a{", "a@b", 'a"b"', "a[", "a\\", "a\tb", "a\x7f"],
    *[":", ":YQ==", "YQ==:", ":Y:", ":YWJjZ:", ":=:", ":====:", ":=YQ=:", ":Y=Q=:", ":YWI==:", ":YQ===:"],
    *[":Y Q==:", ":YQ==\n:", ":YQ-_:", ":YQ==:=", ":YQ!=:", ":YQ==::"],
    *["?", "?2", "?t", "?T", "? 1", "?10", "?-1", "?true", "?1.0"],
    *["@", "@-", "@a", "@1.0", "@1.", "@ 1", "@?1", "@1234567890123456", '@"1"', "@@1", "@--1"],
    *['%"', "%", "%a", "%'a'", '%"a', '%a"', '%"%"', '%"%a"', '%"%a', '%"%C3%BC"', '%"%zz"', '%"\t"'],
    *['%"é"', '%"\x7f"', '%"\n"', '%"%c3"', '%"%c3%28"', '%"%a0%a1"', '%"%ed%a0%80"', '%"%c0%80"', '%"%ff"'],
    *['%"%f4%90%80%80"', '%"%c3 %bc"', '%"%e2%82"', '%"a"b"', "{}", "()", "#"],
]
# These are void as an item; where more may follow, they are two things, each well formed, or nothing at all.
VOID_ANYWHERE = [text for text in NO_BARE_ITEMS if text not in {"", "a b", "a,b", "1,5", "()"}]


def same(found: object, wanted: object) -> bool:
    """Equal, and of one type: a Token equals a str, and True is 1."""
    return type(found) is type(wanted) and found == wanted


@pytest.mark.parametrize(("text", "value"), BARE_ITEMS)
def test_a_bare_item_is_a_value_of_its_type_as_a_member_and_as_a_parameter_too(text: str, value: object):
    assert same(parse_item(text).value, value)
    members = parse_dictionary(f"first={text};p={text}, inner=({text};p={text} {text});q={text}, last")

    first, inner = members["first"], members["inner"]
    assert isinstance(first, Item)
    assert isinstance(inner, InnerList)
    assert same(first.value, value)
    assert same(first.parameters["p"], value)
    assert [same(item.value, value) for item in inner.items] == [True, True]
    assert same(inner.items[0].parameters["p"], value)
    assert same(inner.parameters["q"], value)
    assert members["last"] == Item(True, {})


@pytest.mark.parametrize("text", NO_BARE_ITEMS)
def test_what_is_no_bare_item_is_void(text: str):
    with pytest.raises(Malformed) as caught:
        parse_item(text)

    assert 0 <= caught.value.position <= len(text)


@pytest.mark.parametrize("text", VOID_ANYWHERE)
@pytest.mark.parametrize(
    "field", ["a=1, b={}", "b={}, a=1", "a;p={}", "a=({} 1)", "a=(1 {})", "a=(1;p={} 1)", "a=();p={}"]
)
def test_one_malformed_value_makes_the_whole_field_void(field: str, text: str):
    with pytest.raises(Malformed):
        parse_dictionary(field.format(text))


@pytest.mark.parametrize("code", range(0x100))
def test_each_character_of_keys_tokens_and_strings_is_taken_or_void(code: int):
    c = chr(code)

    assert is_well_formed(parse_item, f'"{c}"') is (c in PRINTABLE and c not in '"\\')
    assert is_well_formed(parse_item, f'"\\{c}"') is (c in '"\\')
    assert is_well_formed(parse_item, f'%"{c}"') is (c in PRINTABLE and c not in '"%')
    assert is_well_formed(parse_item, f"{c}a") is (c in TOKEN_STARTS or c == " ")
    assert is_well_formed(parse_item, f"a{c}b") is (c in TOKEN_CHARACTERS + ";")
    assert is_well_formed(parse_dictionary, f"{c}a=1") is (c in KEY_STARTS or c == " ")
    assert is_well_formed(parse_dictionary, f"a{c}b=1") is (c in KEY_CHARACTERS + ",;")
    assert is_well_formed(parse_item, f"1;{c}a=1") is (c in KEY_STARTS or c == " ")
    assert is_well_formed(parse_item, f"1;a{c}b") is (c in KEY_CHARACTERS + ";=")


def is_well_formed(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except Malformed:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("1;a", {"a": True}),
        ("1;  a;   b=2", {"a": True, "b": 2}),
        ("1;a=1;b=2;a=3", {"a": 3, "b": 2}),
        ("1;a=1;a", {"a": True}),
        ("1;*x.y_z-9=n", {"*x.y_z-9": Token("n")}),
        ("1;a  ", {"a": True}),
    ],
)
def test_parameters_follow_their_value(text: str, parameters: dict[str, object]):
    assert dict(parse_item(text).parameters) == parameters
    assert parse_item(text).value == 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("  1,2  ", [1, 2]),
        ("1 ,\t 2\t,3", [1, 2, 3]),
        ("1\t", [1]),
        ("(  )", [()]),
        ("( 1   2 )", [(1, 2)]),
        ('("a" b), (), 4', [("a", "b"), (), 4]),
    ],
)
def test_a_list_has_members_in_their_order(text: str, values: list[object]):
    found = [
        member.value if isinstance(member, Item) else tuple(item.value for item in member.items)
        for member in parse_list(text)
    ]

    assert found == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("a=?0, b, c;x=1", {"a": False, "b": True, "c": True}),
        ("  a=1,b=2  ", {"a": 1, "b": 2}),
        ("a=1 \t,\t b=2\t", {"a": 1, "b": 2}),
        ("a=1,b=2,a=3", {"a": 3, "b": 2}),
        ("a=1,a", {"a": True}),
        ("a=(1),a=2", {"a": 2}),
        ("a-1_b.c*=1", {"a-1_b.c*": 1}),
    ],
)
def test_a_dictionary_keeps_the_last_value_of_a_key_at_its_first_position(text, values):
    found = parse_dictionary(text)

    assert {key: member.value for key, member in found.items() if isinstance(member, Item)} == values
    assert list(found) == list(values)


MALFORMED = {
    parse_item: [
        *["1;", "1; ", "1;;a", "1 ;a", "1;a =1", "1;a= 1", "1;\ta", "1;A", "1;1", "1;a=", "1;a=(1)"],
        "1;a=1 2",
    ],
    parse_list: [
        *["\t1", "1,", "1, ", "1,\t", ",1", "1,,2", "1 2", "1;a 2", ",", "1\n", "1,\n2", "1\v", "é"],
        *["(", ")", "(1", "1)", "(1,2)", "(1\t2)", "(\t1)", "(1\t)", "(1;a=)", "((1))", "(1 (2))", "(1(2))"],
        *['("a""b")', "(1)2", "(1) 2", "(1);", "(1) ;a", "( ", "(1 ", '("a"', "(a=1)"],
    ],
    parse_dictionary: [
        *["\ta=1", "a=", "a= 1", "a =1", "=1", "a=1,", "a=1, ", "a=1,,b", ",a", "a=1 b=2", "a=1;"],
        *["a=b=c", "a==1", "A=1", "a=1,B=2", "1=2", "-a=1", "_a=1", ".a=1", "é=1", "a=1\n", "a=1,\nb"],
        *["a=1\x00", "a b", '"a"=1', "a=(1", "a=1)", "a=(1)(2)", "a;", "a;=1", "a; ;b"],
    ],
}


@pytest.mark.parametrize(
    ("parse", "text"), [(parse, text) for parse, texts in MALFORMED.items() for text in texts]
)
def test_a_malformed_field_is_void(parse: Callable[[str], object], text: str):
    with pytest.raises(Malformed):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        ", ".join(f"k{n}={n}" for n in range(1_024)),
        "a" * 64 + "=(" + " ".join(map(str, range(256))) + ")",
        "x=1" + "".join(f";p{n}" for n in range(256)),
        'x="' + "s" * 1_024 + '", y=' + "t" * 512,
        "x=:" + "QUFB" * 5_462 + ":",
    ],
    ids=len,
)
def test_what_every_parser_must_hold_is_held(text: str):
    assert parse_dictionary(text)


@pytest.mark.parametrize(
    "piece",
    ["a,", "a=y,", "a;", ";a", "a=(", "(1 ", "a=(),", '\\"', '"', "a=:YQ==:,", "1", " ", "\t", "%c3%bc"],
)
@pytest.mark.parametrize("start", ["", "a", 'a="', 'a=%"', "a=("])
def test_a_field_takes_steps_by_its_length(start: str, piece: str):
    field = start + piece * (30_000 // len(piece))

    taken = calls_of(lambda: is_well_formed(parse_dictionary, field))

    assert taken <= 50 + 8 * len(field)
