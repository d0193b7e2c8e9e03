"""Origins and targets: one value for all spellings, cheap to make, and safe to keep."""

import copy
import pickle

import pytest
import yarl

from polite import origin as module
from polite.errors import InvalidURL
from polite.origin import Origin, Target
from polite.url.parse import MAX_URL
from tests.support import run_python


@pytest.fixture(autouse=True)
def _no_spelling_is_known_yet(monkeypatch):
    monkeypatch.setattr(module, "_spellings", {})


def test_all_spellings_of_an_origin_are_one_value():
    spellings = [
        "http://müller.eu/",
        "HTTP://MÜLLER.eu:80",
        "http:\\\\u:p@xn--mller-kva.eu/x",
        " http://m%C3%BCller.eu?",
    ]

    origins = [Origin.of(spelling) for spelling in spellings * 2]

    assert len(set(origins)) == 1
    assert Target.of("https://example.com/a").origin is Target.of("https://EXAMPLE.com/b").origin
    assert len({hash(origin) for origin in origins}) == 1


_VALUES = [Origin.of("https://example.com:8443"), Target.of("gopher://host/a?b")]


@pytest.mark.parametrize("value", _VALUES)
def test_a_value_cannot_be_changed_and_its_copy_is_equal(value):
    for name in (*value.__dataclass_fields__, "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, "x")
    assert copy.deepcopy(value) == copy.copy(value) == value
    assert hash(copy.deepcopy(value)) == hash(value)


@pytest.mark.parametrize("value", _VALUES)
def test_a_pickled_value_is_found_in_a_process_where_hashes_differ(value):
    script = f"import pickle, sys; from polite.origin import *; print(pickle.load(sys.stdin.buffer) in {{{value!r}}})"
    done = run_python(script, input=pickle.dumps(value), text=False, check=True, env={"PYTHONHASHSEED": "7"})
    assert done.stdout.strip() == b"True"


def test_a_target_is_an_origin_and_what_is_asked_of_it():
    target = Target.of("https://user:secret@Example.com:443/a/../b%2f?q=é&r#fragment")
    assert target.origin == Origin.of("https://example.com")
    assert target.path == "/b%2f?q=%C3%A9&r"
    assert target.url == str(target) == "https://example.com/b%2f?q=%C3%A9&r"
    assert target.origin.robots_url == "https://example.com/robots.txt"
    assert repr(target) == "Target.of('https://example.com/b%2f?q=%C3%A9&r')"
    assert repr(target.origin) == "Origin.of('https://example.com')"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("", "http://example.com:8080/a/b?c"),
        ("#x", "http://example.com:8080/a/b?c"),
        ("?x", "http://example.com:8080/a/b?x"),
        ("x", "http://example.com:8080/a/x"),
        ("/x y", "http://example.com:8080/x%20y"),
        ("//user:secret@Other.example/x", "http://other.example/x"),
        ("https://other.example/x#y", "https://other.example/x"),
        ("http:x", "http://example.com:8080/a/x"),
        ("\thttps://other.example", "https://other.example/"),
    ],
)
def test_a_link_is_resolved_against_the_target_it_was_found_at(reference, url):
    target = Target.of("http://user:secret@example.com:8080/a/b?c#d")
    assert target.join(reference).url == url
    # A default port is not named, and an empty query is kept.
    assert Target.of("https://example.com/a").join("b?").join("#x").url == "https://example.com/b?"


@pytest.mark.parametrize(
    "reference", ["http://", "mailto:a@b", "//a b/", "javascript:void(0)", "http://h:99999/"]
)
def test_a_link_to_nothing_that_can_be_fetched_is_refused(reference):
    with pytest.raises(InvalidURL):
        Target.of("http://example.com/").join(reference)


@pytest.mark.parametrize("value", [None, b"http://h/", yarl.URL("http://h/")])
def test_anything_but_a_str_is_refused_by_its_type(value):
    for make in (Origin.of, Target.of, Target.of("http://h/").join):
        with pytest.raises(TypeError, match=r"pass str\(url\)"):
            make(value)


def test_a_megabyte_of_url_is_refused_with_the_limit():
    with pytest.raises(InvalidURL, match=str(MAX_URL)):
        Target.of("http://example.com/" + "a" * 1_000_000)


def test_only_a_bounded_number_of_spellings_is_remembered():
    for number in range(3 * module._MAX_SPELLINGS):
        Target.of(f"http://h{number}.example:81/")
        assert len(module._spellings) <= module._MAX_SPELLINGS


@pytest.mark.parametrize(
    "url",
    [f"http://{'a' * 300}:81/", "http://user:secret@h/", " http://h:81/", "http://h\t:81/", "http:h:81/"],
)
def test_a_spelling_that_is_long_secret_or_odd_is_not_remembered(url):
    Target.of(url)
    assert url[: url.find("/", 8)] not in module._spellings
    assert not any("secret" in spelling for spelling in module._spellings)


@pytest.mark.parametrize("tail", ["", "?a", "#a", "\\a", "@b", ":99", "?/", "#/", "@b/", "\t/", "\\/"])
def test_a_remembered_spelling_is_not_mistaken_for_a_longer_one(tail):
    Target.of("http://h:81/")
    Target.of("http://h/")
    expected = {"@b": "http://b", "@b/": "http://b", ":99": "http://h:99"}.get(tail, "http://h")
    assert str(Target.of(f"http://h{tail}").origin) == expected
