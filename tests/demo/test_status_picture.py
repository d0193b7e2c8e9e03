"""The picture of the status page: taken where a Chromium is, and otherwise said."""

from pathlib import Path

import pytest

from docs.examples.demo import status_picture
from docs.examples.demo.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
# Octets of the picture in the docs.
_MOST = 150_000


@pytest.mark.slow("a browser")
@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed: apt-get install chromium")
def test_the_picture_is_a_small_png(tmp_path, capsys):
    path = tmp_path / "folder" / "status.png"

    status_picture.write_status_picture(path)

    assert capsys.readouterr().out == f"status page: {path}\n"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < path.stat().st_size < _MOST


def test_without_a_chromium_that_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(status_picture, "chromium", lambda: None)

    status_picture.write_status_picture(tmp_path / "status.png")

    assert "no picture of the status page: no Chromium is installed" in capsys.readouterr().err
    assert not (tmp_path / "status.png").exists()


def test_a_browser_that_does_not_start_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(status_picture, "chromium", lambda: "true")

    status_picture.write_status_picture(tmp_path / "status.png")

    assert "no picture of the status page: the browser did not start" in capsys.readouterr().err


def test_the_docs_have_the_picture():
    picture = ROOT / "docs" / "status.png"

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < _MOST
