"""The ratios of each release, in benchmarks/history.json."""

import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version as installed_version
from pathlib import Path

from packaging.version import Version

import polite

# `./dev bench --compiled` runs in a copy of the project, and names the file of the project itself.
FILE = Path(os.environ.get("POLITE_BENCH_HISTORY") or Path(__file__).parents[1] / "history.json")
PEERS = ("aiohttp", "protego", "yarl")


class HistoryBroken(Exception):
    """The file is not what `write` writes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Where ratios were measured. Only ratios of one kind are compared with each other.

    Attributes:
        form: `pure` or `compiled`.
        python: the minor version, such as `3.11`.
        machine: architecture and name of the processor, and the number of cores.
    """

    form: str
    python: str
    machine: str

    @classmethod
    def here(cls) -> "Kind":
        form = "compiled" if polite.__compiled__ else "pure"
        return cls(form, ".".join(map(str, sys.version_info[:2])), machine())

    def __str__(self) -> str:
        return f"{self.form}, Python {self.python}, {self.machine}"


@dataclass(frozen=True, slots=True)
class Record:
    """The ratios of one version, by name, each the larger the better.

    Attributes:
        date: ISO 8601, when it was measured.
        peers: the versions that ran beside it, by distribution.
    """

    version: str
    date: str
    kind: Kind
    peers: Mapping[str, str]
    ratios: Mapping[str, float]


def machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return what this machine is, as far as ratios depend on it."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.system()
    return f"{platform.machine()}, {name}, {os.cpu_count()} cores"


def peers() -> dict[str, str]:
    return {name: installed_version(name) for name in PEERS}


def read(file: Path = FILE) -> list[Record]:
    """Return all records. Raises HistoryBroken, and OSError if the file cannot be read."""
    try:
        return [_record(each) for each in _rows(file.read_text())]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HistoryBroken(
            f"{file} is not a list of records: {error!r}; take it from the last commit"
        ) from error


def _rows(text: str) -> list[Mapping[str, object]]:
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise TypeError(f"{type(rows).__name__} at the top")
    return rows


def _record(each: Mapping[str, object]) -> Record:
    fields = dict(each)
    kind = Kind(*(str(fields.pop(name)) for name in ("form", "python", "machine")))
    record = Record(**fields, kind=kind)  # type: ignore[arg-type]
    Version(record.version)
    if not record.ratios:
        raise ValueError(f"{record.version} has no ratios, so nothing could fall")
    bad = [name for name, value in record.ratios.items() if not (0 < value < math.inf)]
    if bad:
        raise ValueError(f"{record.version}: {', '.join(bad)} must be numbers above 0")
    return record


def write(records: Iterable[Record], file: Path = FILE) -> None:
    """Write the records by version and kind, one ratio a line, so that a change of one is read in a diff."""
    ordered = sorted(records, key=lambda each: (Version(each.version), str(each.kind)))
    rows = [{**asdict(each), **asdict(each.kind)} for each in ordered]
    for row in rows:
        del row["kind"]
        row["ratios"] = {name: float(f"{ratio:.4g}") for name, ratio in row["ratios"].items()}
    file.write_text(f"{json.dumps(rows, indent=2)}\n")


def added(records: Sequence[Record], new: Record) -> list[Record]:
    """Return the records with a new one, which takes the place of that of the same version and kind."""
    return [each for each in records if (each.version, each.kind) != (new.version, new.kind)] + [new]


def last(records: Sequence[Record], kind: Kind, version: str) -> Record | None:
    """Return the record to compare with: the newest version of this kind that is not newer than `version`."""
    fit = [each for each in records if each.kind == kind and Version(each.version) <= Version(version)]
    return max(fit, key=lambda each: Version(each.version), default=None)
