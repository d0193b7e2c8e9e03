"""An artefact as a user has it: installed into a bare environment, and tried there."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.project.release.builds import clean_environment
from tests.project.release.checklist import StepFailed, run

_EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
_ROBOTS = "User-agent: *\nDisallow: /private/\n"
_IMPORT = "import polite; print(polite.__version__, polite.__compiled__, polite.__file__)"
# What the demo prints at its end, if the servers' own log says that the crawl was polite.
_JUDGED = "every gap kept, nothing disallowed fetched"


class Trial:
    """A bare environment with one wheel and what it needs."""

    def __init__(self, uv: str, folder: Path, python: Path) -> None:
        self.folder = folder
        self._uv = uv
        self._python = python

    def install(self, wheel: Path, source: Path, extras: str = "", groups: Sequence[str] = ()) -> None:
        """Install the wheel with the pins of `source`, and groups of packages that its pyproject.toml names."""
        run(
            self._uv,
            "venv",
            "--quiet",
            "--no-config",
            "--python",
            self._python,
            self.folder,
            env=clean_environment(),
        )
        target = f"polite-crawl{extras} @ {wheel.resolve().as_uri()}"
        run(
            *(self._uv, "pip", "install", "--quiet", "--no-config", "--python", self.program("python")),
            *("--constraints", source / "constraints.txt", "--no-binary", "urllib3-future"),
            *(word for group in groups for word in ("--group", f"{source / 'pyproject.toml'}:{group}")),
            target,
            env=self.environment(),
        )
        run(self._uv, "pip", "check", "--python", self.program("python"), env=clean_environment())

    def try_all(self, version: str, *, compiled: bool) -> str:
        """Import polite, run its command, decide two URLs, and crawl the virtual hosts of the demo on loopback."""
        found, form, file = self.here(_IMPORT).split(maxsplit=2)
        if (found, form == "True") != (version, compiled) or not Path(file.strip()).is_relative_to(
            self.folder
        ):
            raise StepFailed(f"`import polite` gives {found} (compiled: {form}) from {file}")
        said = self._here(self.program("polite"), "--version").strip()
        if said != f"polite {version}{' (compiled)' if compiled else ''}":
            raise StepFailed(f"`polite --version` prints {said!r}")
        self._check()
        shutil.copytree(_EXAMPLES, self.folder / "docs" / "examples", dirs_exist_ok=True)
        demo = self._here(self.program("python"), "-m", "docs.examples.demo")
        if _JUDGED not in demo:
            raise StepFailed(f"the demo ended well and did not print {_JUDGED!r}:\n{demo}")
        return demo.splitlines()[-2]

    def _check(self) -> None:
        robots = self.folder / "robots.txt"
        robots.write_text(_ROBOTS)
        for path, status in (("/about", 0), ("/private/diary", 1)):
            self._here(self.program("polite"), "check", "--robots", robots, path, statuses=(status,))

    def here(self, code: str) -> str:
        """Return what a line of Python prints in this environment."""
        return self._here(self.program("python"), "-I", "-c", code)

    def program(self, name: str) -> Path:
        return self.folder.resolve() / "bin" / name

    def environment(self) -> dict[str, str]:
        return {**clean_environment(), "URLLIB3_NO_OVERRIDE": "1"}

    def _here(self, *command: object, statuses: tuple[int, ...] = (0,)) -> str:
        # The folder has no `polite`, so the installed one is tried.
        return run(*command, statuses=statuses, cwd=self.folder, env=self.environment())


def run_tests(place: Trial, unpacked: Path) -> str:
    """Run README's blocks and collect all tests in an unpacked sdist, with the installed wheel in the place of its `polite`."""
    inside = place.here("import polite; print(polite.__path__[0])").strip()
    shutil.rmtree(unpacked / "polite")
    (unpacked / "polite").symlink_to(inside)
    pytest = (place.program("python"), "-m", "pytest", "--quiet", "-p", "no:cacheprovider")
    here = {"cwd": unpacked, "env": place.environment()}
    readme = run(*pytest, "tests/project/test_docs.py", "-k", "README", **here)
    collected = run(*pytest, "--collect-only", "tests", **here)
    return "\n".join((readme.splitlines()[-1], collected.splitlines()[-1]))


def run_own_tests(root: Path) -> str:
    """Run the tests of ./dev release in its own environment, which alone has the package that writes SBOMs."""
    pytest = (sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider")
    return run(*pytest, "tests/project/release", cwd=root).splitlines()[-1]
