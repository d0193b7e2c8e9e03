"""Real files: nothing fails on them, Google's answers in Google's dialect, and a named cause for each other answer."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from polite.robots.agent import UserAgent
from polite.robots.dialect import GOOGLE, RFC9309, Dialect
from polite.robots.parse import parse
from tests.standards.dialects import CORPUS, corpus, every_dialect, real_files, some_or_all

# The differences between the default and Google's library that may show, as the fields that make them.
CAUSES = """
    decodes_unreserved specials_equal_escapes excluded_equal_escapes normalises_urls exempts_robots_txt
    lettered_names_only index_is_folder extends_fields misspellings allow_needs_colon
""".split()

Question = tuple[bytes, UserAgent, str, bool]


@pytest.fixture(scope="module")
def questions() -> list[tuple[bytes, list[tuple[UserAgent, str, bool]]]]:
    # The library was asked about one name each time, so the chain of names is that one.
    with gzip.open(CORPUS / "google_verdicts.jsonl.gz", "rt") as rows:
        answered = [json.loads(row) for row in rows]
    return [
        (
            corpus()[name],
            [(UserAgent(agent, tokens=(agent,)), path, bool(ok)) for agent, path, ok, _ in asked],
        )
        for name, asked in answered
    ]


def differences(
    questions: list[tuple[bytes, list[tuple[UserAgent, str, bool]]]], dialect: Dialect
) -> Iterator[Question]:
    for body, asked in questions:
        robots = parse(body, dialect)
        for agent, path, answer in asked:
            if robots.rules_for(agent).allows(path) is not answer:
                yield body, agent, path, answer


@some_or_all
@every_dialect
def test_no_real_file_raises_in_any_dialect(dialect: Dialect, files: int):
    for body in corpus(files).values():
        robots = parse(body, dialect)
        decision = robots.decide("ExampleBot-News/1.0", "/a/b.html?c=d")
        assert decision.allowed is robots.rules_for("ExampleBot-News/1.0").allows("/a/b.html?c=d")

    assert len(corpus(files)) == files


@real_files
def test_google_dialect_gives_every_answer_that_google_gave(questions):
    assert sum(len(asked) for _, asked in questions) == 25_082

    assert list(differences(questions, GOOGLE)) == []


@real_files
def test_every_answer_in_which_rfc9309_differs_from_google_has_a_named_cause(questions):
    differing = [
        each.name for each in fields(Dialect) if getattr(RFC9309, each.name) != getattr(GOOGLE, each.name)
    ]
    single = {name: replace(RFC9309, **{name: getattr(GOOGLE, name)}) for name in differing}

    found = list(differences(questions, RFC9309))
    unexplained = [
        (agent.header, path, answer)
        for body, agent, path, answer in found
        if not any(parse(body, single[cause]).rules_for(agent).allows(path) is answer for cause in CAUSES)
    ]

    assert unexplained == []
    assert 0 < len(found) < 25  # were there none, this test could not fail; more of them would be news
