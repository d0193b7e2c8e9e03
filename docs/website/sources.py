"""Which files of the repository are on the site, and at which path."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# Files outside docs/ that have a page of their own name.
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# Folders of docs/ that hold programs and man pages.
_NO_PAGES = frozenset({"examples", "man", "website"})


class Sources:
    """The files of the site in a checkout. A path in the repository and one on the site both use `/`.

    Args:
        root: The checkout.

    Attributes:
        pages: Path on the site of each Markdown page, by its path in the repository.
        assets: The same of each other file below docs/, such as a picture.
        listings: The same of each file of source code that has a page: the examples and the licence.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        below_docs = sorted(
            file
            for file in (root / "docs").rglob("*")
            if file.is_file() and file.relative_to(root / "docs").parts[0] not in _NO_PAGES
        )
        self.pages = _PAGES | dict(self._docs(file for file in below_docs if file.suffix == ".md"))
        self.assets = dict(self._docs(file for file in below_docs if file.suffix != ".md"))
        examples = sorted(
            file.relative_to(root).as_posix() for file in (root / "docs" / "examples").glob("*.py")
        )
        self.listings = {name: f"{name.removeprefix('docs/')}.md" for name in [*examples, "LICENSE"]}

    def _docs(self, files: Iterator[Path]) -> Iterator[tuple[str, str]]:
        for file in files:
            name = file.relative_to(self.root).as_posix()
            yield name, name.removeprefix("docs/")

    def place(self, name: str) -> str | None:
        """Return the path on the site of a file or folder of the repository, or None if the site has none.

        A folder of docs/ is at its index, or else at its first page.
        """
        here = self.pages | self.assets | self.listings
        if name in here:
            return here[name]
        if f"{name}/index.md" in self.pages:
            return self.pages[f"{name}/index.md"]
        inside = sorted(page for page in self.pages if PurePosixPath(name) in PurePosixPath(page).parents)
        return self.pages[inside[0]] if inside and name.startswith("docs/") else None

    def origin(self, page: str) -> str:
        """Return the path in the repository of a page of the site."""
        return next(name for name, place in (self.pages | self.listings).items() if place == page)

    def text(self, name: str) -> str:
        """Return a file's text. That of source code is a page with one block."""
        text = (self.root / name).read_text()
        if name not in self.listings:
            return text
        heading = f"# {PurePosixPath(name).name}\n\n"
        if not name.endswith(".py"):
            return f"{heading}```text\n{text}```\n"
        about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        return f"{heading}{about}\n\n```python\n{text}```\n"
