"""An integration whose package is missing says which extra brings it."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.frameworks.installed import FRAMEWORKS
from tests.support import run_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("curl_cffi", "curl_cffi", "curl-cffi"),
        ("niquests", "niquests", "niquests"),
        ("opentelemetry", "opentelemetry", "opentelemetry"),
        ("prometheus", "prometheus_client", "prometheus"),
        ("requests", "requests", "requests"),
        *((framework, framework, framework) for framework in FRAMEWORKS),
    ],
)
def test_the_error_names_the_extra(module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch):
    for each in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"polite.integrations.{module}", raising=False)
    with pytest.raises(ImportError, match=re.escape(f"pip install 'polite-crawl[{extra}]'")):
        importlib.import_module(f"polite.integrations.{module}")


def test_polite_and_its_command_start_without_any_extra() -> None:
    """In an environment of pip install polite-crawl."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = {re.split("[>[]", e)[0] for extra in project["optional-dependencies"].values() for e in extra}
    # The package opentelemetry-api brings the module opentelemetry.
    modules = [name.replace("-", "_").removesuffix("_api") for name in packages]
    program = f"""\
import sys
sys.modules |= dict.fromkeys({sorted(modules)})
import polite.cli, polite.testing
sys.argv = ["polite", "check", "--help"]
polite.cli.program()
"""

    run = run_python(program)

    assert (run.returncode, run.stderr) == (0, "")
