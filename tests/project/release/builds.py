"""Two builds of everything, in two folders, as two people would make them; both must give the same octets."""

import os
import tarfile
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tests.project.release import tree
from tests.project.release.checklist import StepFailed, run

# The variables of a build. A release is built with the pins of constraints.txt, and with nothing from the user's shell.
_KEPT = ("PATH", "HOME", "LANG", "CC", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_KEPT_PREFIXES = ("UV_", "PIP_")


class Builds:
    """The folders of two builds, and what is in them.

    Attributes:
        first, second: copies of the last commit, the second with other times and modes, and a longer path.
        epoch: Unix time of the commit, in seconds; what the builds have for SOURCE_DATE_EPOCH.
        sdist, pure, compiled: the artefacts of the first build; empty paths until they are built.
    """

    def __init__(self, root: Path, uv: str, folder: Path, python: Path) -> None:
        self._uv = uv
        self._python = python
        self.epoch = tree.commit_time(root)
        self.first = tree.export(root, folder / "first")
        self.second = tree.export(root, folder / "another place" / "second")
        tree.make_unlike(self.second)
        self.sdist = self.pure = self.compiled = Path()

    def build_pure(self) -> str:
        """Build sdist and wheel twice, each wheel from its sdist, and a wheel from the tree."""
        first, second = (self._build(place) for place in (self.first, self.second))
        note = same(first, second)
        self.sdist, self.pure = artefact(first, ".tar.gz"), artefact(first, ".whl")
        direct = self._build(self.first, "--wheel", out="direct")
        return f"{note}\nthe wheel from the tree and that from the sdist: {same(direct, first, '.whl')}"

    def build_compiled(self) -> str:
        first, second = (
            self._build(place, "--wheel", out="compiled", env={"POLITE_COMPILE": "1"})
            for place in (self.first, self.second)
        )
        self.compiled = artefact(first, ".whl")
        if self.compiled.name.endswith("-none-any.whl"):
            raise StepFailed(f"POLITE_COMPILE=1 built {self.compiled.name}, which is pure")
        return same(first, second)

    def _build(
        self, source: Path, *kinds: str, out: str = "dist", env: Mapping[str, str] | None = None
    ) -> Path:
        second = source == self.second
        folder = source.parent / f"{source.name}-{out}"
        constraints = source / "constraints.txt"
        run(
            *(self._uv, "build", "--no-config", "--python", self._python, "--build-constraints", constraints),
            *("--out-dir", folder, *kinds, source),
            env={
                **clean_environment(),
                **(env or {}),
                "SOURCE_DATE_EPOCH": str(self.epoch),
                "TZ": "Pacific/Auckland" if second else "UTC",
            },
            umask=0o077 if second else 0o022,
        )
        return folder


def clean_environment() -> dict[str, str]:
    """Return the variables that a build and a bare environment may see."""
    return {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    } | {"PATH": _without_environments(os.environ.get("PATH", ""))}


def _without_environments(path: str) -> str:
    """Return the PATH without virtual environments, whose tools a build would take for its own."""
    parts = [part for part in path.split(os.pathsep) if not (Path(part).parent / "pyvenv.cfg").exists()]
    return os.pathsep.join(parts)


def artefact(folder: Path, ending: str) -> Path:
    found = sorted(folder.glob(f"*{ending}"))
    if len(found) != 1:
        raise StepFailed(f"{folder} has {len(found)} files *{ending}, where a build makes one")
    return found[0]


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def same(first: Path, second: Path, ending: str = "") -> str:
    """Return the digests of the artefacts of two folders. Raises StepFailed if they differ, naming the members."""
    lines, bad = [], []
    ours, theirs = (
        {
            path.name: path
            for path in sorted(folder.iterdir())
            if path.name.endswith(ending or (".whl", ".gz"))
        }
        for folder in (first, second)
    )
    if ours.keys() != theirs.keys():
        raise StepFailed(f"one build made {', '.join(ours)}, the other {', '.join(theirs)}")
    for name, path in ours.items():
        lines.append(f"{digest(path)}  {name}")
        if digest(path) != digest(theirs[name]):
            bad += [f"{name}: two builds differ", *differences(path, theirs[name])]
    if bad:
        raise StepFailed("\n".join(bad))
    return "\n".join(lines)


def differences(first: Path, second: Path) -> list[str]:
    """Return a line for each member of two archives that differs in its octets, its time or its mode."""
    ours, theirs = members(first), members(second)
    names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return [f"  {name}" for name in names] or ["  the same members in another order or compression"]


def members(path: Path) -> dict[str, tuple[object, ...]]:
    """Return what an archive holds: of each member the octets' digest, the time and the mode."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {
                each.filename: (sha256(wheel.read(each)).hexdigest(), each.date_time, each.external_attr)
                for each in wheel.infolist()
            }
    with tarfile.open(path) as sdist:
        return {
            each.name: (_octets(sdist, each), each.mtime, each.mode, each.uid, each.uname) for each in sdist
        }


def _octets(sdist: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = sdist.extractfile(member)
    return "" if file is None else sha256(file.read()).hexdigest()
