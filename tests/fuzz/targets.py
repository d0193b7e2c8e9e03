"""The fuzz targets by name."""

from collections.abc import Mapping
from types import ModuleType

from tests.fuzz import freshness, ftp, indexing, inflate, location, preferences, retry_after, robots, usage

TARGETS: Mapping[str, ModuleType] = {
    module.__name__.rpartition(".")[2].replace("_", "-"): module
    for module in (robots, retry_after, freshness, location, inflate, ftp, indexing, preferences, usage)
}
