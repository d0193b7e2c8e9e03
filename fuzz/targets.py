"""What can be fuzzed, by name: modules with WORDS, SEEDS and `one_input(data)`, which raises where something is wrong."""

from collections.abc import Mapping
from types import ModuleType

from fuzz import freshness, ftp, indexing, inflate, location, preferences, retry_after, robots

TARGETS: Mapping[str, ModuleType] = {
    module.__name__.rpartition(".")[2].replace("_", "-"): module
    for module in (robots, retry_after, freshness, location, inflate, ftp, indexing, preferences)
}
