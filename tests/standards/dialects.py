"""The dialects that a document's requirement is about, as parameters of a test; and the corpus of real files."""

import tarfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from polite.robots.dialect import BY_NAME, CLASSIC, GOOGLE, GOOGLE_2010, Dialect

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
real_files = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of real files is not beside the project"
)


@cache
def corpus(most: int = 2_000) -> dict[str, bytes]:
    """The real files by name, or so many of them."""
    # Read as a stream: to go back in it is to decompress it again.
    with tarfile.open(CORPUS / "bodies.tar.xz", "r|xz") as archive:
        return {
            member.name.removesuffix(".txt"): file.read()
            for member in islice(archive, most)
            if (file := archive.extractfile(member)) is not None
        }


def some_or_all(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test of `files`: all of the corpus, which is slow, and some of it."""
    test = pytest.mark.parametrize("files", [2_000, 150], ids=["all files", "some files"])(test)
    return real_files(pytest.mark.slow("every file of the corpus", rows=["all files"])(test))


ALL = [*BY_NAME.values()]


def dialects(*chosen: Dialect) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dialect", chosen, ids=lambda dialect: dialect.name)


every_dialect = dialects(*ALL)
newer_dialects = dialects(*(each for each in ALL if each is not CLASSIC))
combining_dialects = dialects(*(each for each in ALL if each is not GOOGLE_2010))
lettered_dialects = dialects(*(each for each in ALL if each is not GOOGLE))
