"""Two builds of everything, in two folders, as two people would make them; both must give the same octets."""

import os
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from subprocess import run as run_process

from tests.project.release.checklist import StepFailed, run

# The variables of a build. A release is built with the pins of constraints.txt, and with nothing from the user's shell.
_KEPT = ("PATH", "HOME", "LANG", "CC", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_KEPT_PREFIXES = ("UV_", "PIP_")
_UNTOUCHED_SINCE = 946_684_800.0


class Builds:
    """Two copies of the last commit, the second with other times and modes, and a longer path; and what is built of them.

    Attributes:
        epoch: Unix time of the commit, in seconds; what the builds have for SOURCE_DATE_EPOCH.
    """

    def __init__(self, root: Path, uv: str, folder: Path, python: Path) -> None:
        self._uv, self._python = uv, python
        self.epoch = int(run("git", "log", "-1", "--format=%ct", cwd=root))
        self.copies = folder / "first", folder / "another place" / "second"
        archive = run_process(["git", "archive", "HEAD"], cwd=root, capture_output=True, check=False)
        if archive.returncode:
            raise StepFailed(archive.stderr.decode())
        for copy in self.copies:
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
                files.extractall(copy, filter="data")
        for path in self.copies[1].rglob("*"):
            path.chmod(path.stat().st_mode & ~0o077)
            os.utime(path, (_UNTOUCHED_SINCE, _UNTOUCHED_SINCE))

    def build(self, *kinds: str, out: str = "dist", compiled: bool = False) -> tuple[Path, Path]:
        """Build both copies; return the folders of the artefacts."""
        folders = []
        for second, copy in enumerate(self.copies):
            folder = copy.parent / f"{copy.name}-{out}"
            run(
                *(self._uv, "build", "--no-config", "--python", self._python),
                *("--build-constraints", copy / "constraints.txt", "--out-dir", folder, *kinds, copy),
                env={
                    **clean_environment(),
                    **({"POLITE_COMPILE": "1"} if compiled else {}),
                    "SOURCE_DATE_EPOCH": str(self.epoch),
                    "TZ": "Pacific/Auckland" if second else "UTC",
                },
                umask=0o077 if second else 0o022,
            )
            folders.append(folder)
        return folders[0], folders[1]


def clean_environment() -> dict[str, str]:
    """Return the variables that a build and a bare environment may see.

    The PATH has no virtual environments, whose tools a build would take for its own.
    """
    kept = {
        name: text for name, text in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    parts = os.environ.get("PATH", "").split(os.pathsep)
    kept["PATH"] = os.pathsep.join(part for part in parts if not (Path(part).parent / "pyvenv.cfg").exists())
    return kept


def artefact(folder: Path, ending: str) -> Path:
    found = sorted(folder.glob(f"*{ending}"))
    if len(found) != 1:
        raise StepFailed(f"{folder} has {len(found)} files *{ending}, where a build makes one")
    return found[0]


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def same(first: Path, second: Path, ending: str = "") -> str:
    """Return the digests of the artefacts of two folders. Raises StepFailed if they differ."""
    ours, theirs = (
        {
            path.name: digest(path)
            for path in folder.iterdir()
            if path.name.endswith(ending or (".whl", ".gz"))
        }
        for folder in (first, second)
    )
    if ours != theirs:
        names = ", ".join(sorted({name for name, _ in ours.items() ^ theirs.items()}))
        raise StepFailed(f"two builds differ in {names}: diffoscope shows how")
    return "\n".join(f"{octets}  {name}" for name, octets in sorted(ours.items()))
