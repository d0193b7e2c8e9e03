"""The dialects that a document's requirement is about, as parameters of a test; and the corpus of real files."""

import tarfile
from functools import cache
from pathlib import Path

import pytest

from polite.robots.dialect import BY_NAME, CLASSIC, GOOGLE, GOOGLE_2010, Dialect

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
real_files = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of real files is not beside the project"
)


@cache
def corpus() -> dict[str, bytes]:
    with tarfile.open(CORPUS / "bodies.tar.xz") as archive:
        files = {member.name.removesuffix(".txt"): archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file is not None}


ALL = [*BY_NAME.values()]


def dialects(*chosen: Dialect) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dialect", chosen, ids=lambda dialect: dialect.name)


every_dialect = dialects(*ALL)
newer_dialects = dialects(*(each for each in ALL if each is not CLASSIC))
combining_dialects = dialects(*(each for each in ALL if each is not GOOGLE_2010))
lettered_dialects = dialects(*(each for each in ALL if each is not GOOGLE))
