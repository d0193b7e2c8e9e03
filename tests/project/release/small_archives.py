"""Wheels and sdists of a few files, made by hand, for tests."""

import base64
import io
import tarfile
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

INFO = "polite_crawl-1.0.0.dist-info/"
PAGE = "polite_crawl-1.0.0.data/data/share/man/man1/polite.1"
PURE = "polite_crawl-1.0.0-py3-none-any.whl"
COMPILED = "polite_crawl-1.0.0-cp311-cp311-linux_x86_64.whl"
METADATA = """\
Metadata-Version: 2.4
Name: polite-crawl
Version: 1.0.0
License-Expression: MIT
License-File: LICENSE
Classifier: Framework :: AsyncIO
Requires-Python: >=3.11
Requires-Dist: aiohttp>=3
Requires-Dist: rich; extra == "cli"
Description-Content-Type: text/markdown
Provides-Extra: cli

# polite
"""
# The tree that the archives are of.
TREE = {
    "polite/__init__.py": "",
    "polite/url/parse.py": "path = 1\n",
    "LICENSE": "MIT\n",
    "dev": "#!/bin/sh\n",
    "docs/man/polite.1": ".TH\n",
}


def tree(folder: Path) -> Path:
    for name, text in TREE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def wheel(path: Path, changes: Mapping[str, str | None] | None = None, record: str | None = None) -> Path:
    """Write a wheel of TREE. `changes` replaces, adds or (with None) leaves out members; `record` is the RECORD."""
    files = {name: text for name, text in TREE.items() if name.startswith("polite/")}
    files |= {
        f"{INFO}METADATA": METADATA,
        f"{INFO}WHEEL": "Wheel-Version: 1.0\n",
        f"{INFO}entry_points.txt": "",
    }
    files |= {PAGE: TREE["docs/man/polite.1"], f"{INFO}licenses/LICENSE": TREE["LICENSE"]}
    kept = {name: text for name, text in {**files, **(changes or {})}.items() if text is not None}
    rows = [f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in kept.items()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in kept.items():
            archive.writestr(zipfile.ZipInfo(name), text)
        archive.writestr(zipfile.ZipInfo(f"{INFO}RECORD"), record or "".join([*rows, f"{INFO}RECORD,,\n"]))
    return path


def sdist(
    path: Path, changes: Mapping[str, str | None] | None = None, link: str = "", **fields: object
) -> Path:
    """Write an sdist of TREE. `fields` are set for each member, such as `uid=1000`; `link` is where a link leads."""
    files = {**TREE, "PKG-INFO": METADATA, **(changes or {})}
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            if text is not None:
                member = tarfile.TarInfo(f"polite_crawl-1.0.0/{name}")
                member.size = len(text)
                for field, value in fields.items():
                    setattr(member, field, value)
                archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("polite_crawl-1.0.0/link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
