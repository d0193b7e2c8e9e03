"""The steps of a release, in their order."""

import json
import os
import shutil
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from polite.version import __version__
from tests.project.release import contents, sbom, version
from tests.project.release.builds import Builds, artefact, clean_environment, digest, same
from tests.project.release.checklist import LeftOut, Step, StepFailed, run

# The folder of what is published.
DIST = "dist"
# The names of the steps that others need.
_COPIED = "two copies of the commit"
_PURE = "sdist and pure wheel, built twice"
_SDIST = "files, metadata and SBOM of the sdist"
_TESTS = "README and tests of the sdist, with the pure wheel"
_COMPILED = "compiled wheel, built twice"
_ROBOTS = "User-agent: *\nDisallow: /private/\n"
_IMPORT = "import polite; print(polite.__version__, polite.__compiled__, polite.__file__)"
# What the demo prints at its end, if the servers' own log says that the crawl was polite.
_JUDGED = "every gap kept, nothing disallowed fetched"


class Release:
    """The folders of one walk over the checklist, and its steps."""

    def __init__(self, root: Path, uv: str, folder: Path, python: Path) -> None:
        self._root, self._uv = root, str(Path(uv).resolve()) if os.sep in uv else uv
        self._folder, self._python = folder, python
        self._builds: Builds | None = None
        # The artefacts, by "sdist", "pure" and "compiled", and the wheels that were tried.
        self._made: dict[str, Path] = {}
        self._tried: list[Path] = []

    def steps(self, *, final: bool) -> list[Step]:
        """Return all steps. `final` refuses what may still be missing before the release commit."""
        return [
            Step("tests of this command", self._own_tests),
            Step("version", lambda: version.check_form(__version__)),
            Step("tag", lambda: version.check_tag(__version__, self._git("tag", "--list").split())),
            Step("CHANGELOG", lambda: self._changelog(final=final)),
            Step("addresses of the project", lambda: self._addresses(final=final)),
            Step("nothing uncommitted", self._clean),
            Step("ratios of the benchmarks are recorded", lambda: self._history(final=final)),
            Step(_COPIED, self._copy),
            Step(_PURE, self._build_pure, needs=(_COPIED,)),
            Step(_SDIST, self._sdist, needs=(_PURE,)),
            *self._of_wheel("pure", _PURE),
            Step(_TESTS, self._tests, needs=(_PURE,)),
            Step(_COMPILED, self._build_compiled, needs=(_COPIED,)),
            *self._of_wheel("compiled", _COMPILED),
            Step(f"{DIST}/", self._publishable, needs=(_PURE, _SDIST, _TESTS)),
        ]

    def discard(self) -> None:
        """Remove dist/. Raises OSError if that is not possible."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._root / DIST)

    def _of_wheel(self, form: str, build: str) -> list[Step]:
        def files() -> str:
            return contents.check_wheel(self._made[form], self.builds.copies[0], self._tracked())

        return [
            Step(f"files of the {form} wheel", files, needs=(build,)),
            Step(
                f"metadata of the {form} wheel",
                lambda: contents.check_metadata(self._made[form], __version__),
                needs=(build,),
            ),
            Step(f"SBOM of the {form} wheel", lambda: self._sbom(self._made[form]), needs=(build,)),
            Step(f"the {form} wheel in a bare environment", lambda: self._try(form), needs=(build,)),
        ]

    @property
    def builds(self) -> Builds:
        assert self._builds is not None, f"{_COPIED} comes first"
        return self._builds

    def _git(self, *arguments: str) -> str:
        return run("git", *arguments, cwd=self._root)

    def _tracked(self) -> set[str]:
        return {*self._git("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")} - {""}

    def _own_tests(self) -> str:
        """Run the tests of ./dev release in its own environment, which alone has the package that writes SBOMs."""
        pytest = (sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider")
        return run(*pytest, "tests/project/release", cwd=self._root).splitlines()[-1]

    def _addresses(self, *, final: bool) -> str:
        project = tomllib.loads((self._root / "pyproject.toml").read_text())["project"]
        missing = {"Changelog", "Documentation", "Issues", "Source"} - project["urls"].keys()
        note = f"pyproject.toml: [project.urls] lacks {', '.join(sorted(missing))}"
        if final and missing:
            raise StepFailed(note)
        return note if missing else ""

    def _changelog(self, *, final: bool) -> str:
        text = (self._root / "CHANGELOG.md").read_text()
        return version.check_changelog(__version__, text, datetime.now(UTC).date(), final=final)

    def _clean(self) -> str:
        if changed := self._git("status", "--porcelain"):
            raise StepFailed(f"these files are not committed:\n{changed}")
        return self._git("log", "-1", "--format=%h %s").strip()

    def _history(self, *, final: bool) -> str:
        text = (self._root / "benchmarks" / "history.json").read_text()
        return version.check_history(__version__, json.loads(text), final=final)

    def _copy(self) -> str:
        self._builds = Builds(self._root, self._uv, self._folder, self._python)
        return f"SOURCE_DATE_EPOCH={self._builds.epoch}"

    def _build_pure(self) -> str:
        """Build sdist and wheel twice, each wheel from its sdist, and a wheel from the tree."""
        first, second = self.builds.build()
        note = same(first, second)
        self._made |= {"sdist": artefact(first, ".tar.gz"), "pure": artefact(first, ".whl")}
        direct, _ = self.builds.build("--wheel", out="direct")
        return f"{note}\nthe wheel from the tree and that from the sdist: {same(direct, first, '.whl')}"

    def _build_compiled(self) -> str:
        compiler = os.environ.get("CC", "cc").split()[0]
        if shutil.which(compiler) is None:
            raise LeftOut(f"there is no C compiler {compiler}: build the compiled wheel where one is")
        first, second = self.builds.build("--wheel", out="compiled", compiled=True)
        self._made["compiled"] = artefact(first, ".whl")
        return same(first, second)

    def _sdist(self) -> str:
        made = self._made["sdist"]
        files = contents.check_sdist(made, self.builds.copies[0], self._tracked())
        return "\n".join((files, contents.check_metadata(made, __version__), self._sbom(made)))

    def _sbom(self, made: Path) -> str:
        own = sbom.Package(__version__, tuple(contents.requires(made)), "MIT")
        packages = sbom.needed(own, (self.builds.copies[0] / "constraints.txt").read_text())
        path = sbom.write(made, own, packages, self.builds.epoch)
        return f"{path.name}: {len(packages)} packages, valid"

    def _install(self, folder: Path, wheel: Path, extras: str = "", groups: Sequence[str] = ()) -> Path:
        """Make a bare environment with a wheel, the pins of the commit, and groups of packages; return its programs."""
        source, programs, clean = self.builds.copies[0], folder.resolve() / "bin", clean_environment()
        run(self._uv, "venv", "--quiet", "--no-config", "--python", self._python, folder, env=clean)
        run(
            *(self._uv, "pip", "install", "--quiet", "--no-config", "--python", programs / "python"),
            *("--constraints", source / "constraints.txt", "--no-binary", "urllib3-future"),
            *(word for group in groups for word in ("--group", f"{source / 'pyproject.toml'}:{group}")),
            f"polite-crawl{extras} @ {wheel.resolve().as_uri()}",
            env=_bare(),
        )
        run(self._uv, "pip", "check", "--python", programs / "python", env=clean)
        return programs

    def _try(self, form: str) -> str:
        """Install a wheel; import it, run its command, decide two URLs, and crawl the virtual hosts of the demo on loopback."""
        folder = self._folder / f"bare-{form}"
        programs = self._install(folder, self._made[form])
        # The folder has no `polite`, so the installed one is tried.
        here = {"cwd": folder, "env": _bare()}
        found, built, file = run(programs / "python", "-I", "-c", _IMPORT, **here).split(maxsplit=2)
        compiled = form == "compiled"
        if (found, built) != (__version__, str(compiled)) or not Path(file.strip()).is_relative_to(folder):
            raise StepFailed(f"`import polite` gives {found} (compiled: {built}) from {file}")
        said = run(programs / "polite", "--version", **here).strip()
        if said != f"polite {__version__}{' (compiled)' if compiled else ''}":
            raise StepFailed(f"`polite --version` prints {said!r}")
        (folder / "robots.txt").write_text(_ROBOTS)
        for path, status in (("/about", 0), ("/private/diary", 1)):
            run(programs / "polite", "check", "--robots", "robots.txt", path, statuses=(status,), **here)
        shutil.copytree(self._root / "docs" / "examples", folder / "docs" / "examples")
        demo = run(programs / "python", "-m", "docs.examples.demo", **here)
        if _JUDGED not in demo:
            raise StepFailed(f"the demo ended well and did not print {_JUDGED!r}:\n{demo}")
        self._tried.append(self._made[form])
        return demo.splitlines()[-2]

    def _tests(self) -> str:
        """Run README's blocks and collect all tests in the unpacked sdist, with the installed wheel as its `polite`."""
        programs = self._install(
            self._folder / "for-tests", self._made["pure"], extras="[cli]", groups=["dev"]
        )
        with tarfile.open(self._made["sdist"]) as sdist:
            sdist.extractall(self._folder / "unpacked", filter="data")
        (unpacked,) = (self._folder / "unpacked").iterdir()
        inside = run(programs / "python", "-I", "-c", "import polite; print(polite.__path__[0])", env=_bare())
        shutil.rmtree(unpacked / "polite")
        (unpacked / "polite").symlink_to(inside.strip())
        pytest = (programs / "python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider")
        readme = run(*pytest, "tests/project/test_docs.py", "-k", "README", cwd=unpacked, env=_bare())
        collected = run(*pytest, "--collect-only", "tests", cwd=unpacked, env=_bare())
        return "\n".join((readme.splitlines()[-1], collected.splitlines()[-1]))

    def _publishable(self) -> str:
        """Copy the sdist, the wheels that were tried, and their SBOMs to dist/, with their digests in SHA256SUMS."""
        self.discard()
        folder = self._root / DIST
        folder.mkdir()
        for made in (self._made["sdist"], *self._tried):
            for path in (made, made.with_name(f"{made.name}{sbom.ENDING}")):
                shutil.copyfile(path, folder / path.name)
        sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
        (folder / "SHA256SUMS").write_text(sums)
        return sums


def _bare() -> dict[str, str]:
    return {**clean_environment(), "URLLIB3_NO_OVERRIDE": "1"}
