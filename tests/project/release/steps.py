"""The steps of a release, in their order."""

import json
import os
import shutil
import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from polite.version import __version__
from tests.project.release import contents, requirements, tree, version
from tests.project.release.builds import Builds, digest
from tests.project.release.checklist import LeftOut, Step
from tests.project.release.trial import Trial, run_own_tests, run_tests

# The folder of what is published.
DIST = "dist"
# The names of the steps that others need.
_COPIED = "two copies of the commit"
_PURE = "sdist and pure wheel, built twice"
_SDIST = "files, metadata and SBOM of the sdist"
_TESTS = "README and tests of the sdist, with the pure wheel"
_COMPILED = "compiled wheel, built twice"


class Release:
    """The folders of one walk over the checklist, and its steps."""

    def __init__(self, root: Path, uv: str, folder: Path, python: Path) -> None:
        self._root = root
        self._uv = str(Path(uv).resolve()) if os.sep in uv else uv
        self._folder = folder
        self._python = python
        self._builds: Builds | None = None
        self._tried: list[Path] = []

    @property
    def builds(self) -> Builds:
        assert self._builds is not None, f"{_COPIED} comes first"
        return self._builds

    def steps(self, *, final: bool) -> list[Step]:
        """Return all steps. `final` refuses what may still be missing before the release commit."""
        return [
            Step("tests of this command", partial(run_own_tests, self._root)),
            Step("version", partial(version.check_form, __version__)),
            Step("tag", lambda: version.check_tag(__version__, tree.tags(self._root))),
            Step("CHANGELOG", partial(self._changelog, final=final)),
            Step("nothing uncommitted", lambda: tree.check_clean(self._root)),
            Step("ratios of the benchmarks are recorded", partial(self._history, final=final)),
            Step(_COPIED, self._copy),
            Step(_PURE, self._build_pure, needs=(_COPIED,)),
            Step(_SDIST, self._sdist, needs=(_PURE,)),
            *self._of_wheel("pure", _PURE),
            Step(_TESTS, self._tests, needs=(_PURE,)),
            Step(_COMPILED, self._compile, needs=(_COPIED,)),
            *self._of_wheel("compiled", _COMPILED),
            Step(f"{DIST}/", self._publishable, needs=(_PURE, _SDIST, _TESTS)),
        ]

    def discard(self) -> None:
        """Remove dist/. Raises OSError if that is not possible."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._root / DIST)

    def _of_wheel(self, form: str, build: str) -> list[Step]:
        def wheel() -> Path:
            return self.builds.pure if form == "pure" else self.builds.compiled

        return [
            Step(f"files of the {form} wheel", lambda: self._wheel(wheel()), needs=(build,)),
            Step(f"metadata of the {form} wheel", lambda: self._metadata(wheel()), needs=(build,)),
            Step(f"SBOM of the {form} wheel", lambda: self._sbom(wheel()), needs=(build,)),
            Step(f"the {form} wheel in a bare environment", lambda: self._try(wheel(), form), needs=(build,)),
        ]

    def _changelog(self, *, final: bool) -> str:
        text = (self._root / "CHANGELOG.md").read_text()
        return version.check_changelog(__version__, text, datetime.now(UTC).date(), final=final)

    def _history(self, *, final: bool) -> str:
        text = (self._root / "benchmarks" / "history.json").read_text()
        return version.check_history(__version__, json.loads(text), final=final)

    def _copy(self) -> str:
        self._builds = Builds(self._root, self._uv, self._folder, self._python)
        return f"SOURCE_DATE_EPOCH={self._builds.epoch}"

    def _build_pure(self) -> str:
        return self.builds.build_pure()

    def _sdist(self) -> str:
        files = contents.check_sdist(self.builds.sdist, self.builds.first, tree.tracked(self._root))
        return "\n".join((files, self._metadata(self.builds.sdist), self._sbom(self.builds.sdist)))

    def _wheel(self, wheel: Path) -> str:
        return contents.check_wheel(wheel, self.builds.first, tree.tracked(self._root))

    def _metadata(self, artefact: Path) -> str:
        return contents.check_metadata(artefact, __version__)

    def _sbom(self, artefact: Path) -> str:
        # Only the environment of ./dev release has the package that writes SBOMs.
        from tests.project.release import sbom

        lines = contents.requires(artefact)
        pinned = requirements.pins((self.builds.first / "constraints.txt").read_text())
        packages = requirements.needed(lines, pinned)
        path = sbom.write(artefact, __version__, packages, requirements.direct(lines), self.builds.epoch)
        return f"{path.name}: {len(packages)} packages, valid"

    def _try(self, wheel: Path, form: str) -> str:
        trial = Trial(self._uv, self._folder / f"bare-{form}", self._python)
        trial.install(wheel, self.builds.first)
        note = trial.try_all(__version__, compiled=form == "compiled")
        self._tried.append(wheel)
        return note

    def _tests(self) -> str:
        trial = Trial(self._uv, self._folder / "for-tests", self._python)
        trial.install(self.builds.pure, self.builds.first, extras="[cli]", groups=["dev"])
        with tarfile.open(self.builds.sdist) as sdist:
            sdist.extractall(self._folder / "unpacked", filter="data")
        (unpacked,) = (self._folder / "unpacked").iterdir()
        return run_tests(trial, unpacked)

    def _compile(self) -> str:
        compiler = os.environ.get("CC", "cc").split()[0]
        if shutil.which(compiler) is None:
            raise LeftOut(
                f"there is no C compiler called {compiler}: build the compiled wheel where there is one"
            )
        return self.builds.build_compiled()

    def _publishable(self) -> str:
        """Copy the sdist, the wheels that were tried, and their SBOMs to dist/, with their digests in SHA256SUMS."""
        self.discard()
        folder = self._root / DIST
        folder.mkdir()
        for artefact in (self.builds.sdist, *self._tried):
            for path in (artefact, artefact.with_name(f"{artefact.name}{contents.SBOM}")):
                shutil.copyfile(path, folder / path.name)
        sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
        (folder / "SHA256SUMS").write_text(sums)
        return sums
