"""The description of the package, which an index shows: README.md without links that lead nowhere there."""

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[Five\nlines](docs/five.md#a) do", "Five\nlines (`docs/five.md#a`) do"),
        ("![a picture](docs/a.svg)", "a picture (`docs/a.svg`)"),
        ("[this](#there)", "this (`#there`)"),
        ("[it](https://example.com/) or [mail](mailto:a@example.com)",) * 2,
        ("```python\nrules[0](path)\n```",) * 2,
    ],
)
def test_a_relative_link_becomes_its_text_and_path(hooks: ModuleType, text: str, shown: str) -> None:
    assert hooks.without_relative_links(text).startswith(f"{shown}\nPaths in parentheses are")


def test_the_description_is_readme_without_relative_links(hooks: ModuleType) -> None:
    metadata: dict[str, dict[str, str]] = {}

    hooks.DescriptionHook.update(SimpleNamespace(root=str(ROOT)), metadata)

    text = metadata["readme"]["text"]
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert text.startswith("# polite\n")
    assert "a small crawler (`docs/tutorial/small-crawler.md`)" in text
    assert "](docs/" not in text
    for path in hooks._RELATIVE.findall((ROOT / "README.md").read_text()):
        assert (ROOT / path[1]).exists(), path
