import json
import os
from pathlib import Path

import pytest

from tests.views.samples import CARDS, HOSTILE, hostile_cards
from tests.views.test_html import TAGS, Outline
from torch_inspector.notebook.options import ReportFiles
from torch_inspector.notebook.writing import write_report
from torch_inspector.views.html import to_page

CARD = CARDS["report"]


def told(files, message=None):
    """The one line about the one file."""
    (line,) = write_report(files, CARD, message or {"version": 1})
    assert "\n" not in line
    assert len(line) < 300
    return line


def test_both_are_written(tmp_path):
    files = ReportFiles(str(tmp_path / "run.json"), str(tmp_path / "run.html"))
    lines = write_report(files, CARD, {"version": 1, "x": float("nan")})
    assert [line.partition(": ")[2].partition(",")[0] for line in lines] == ["report written"] * 2
    assert json.loads(Path(files.json).read_text(encoding="utf-8")) == {"version": 1, "x": "nan"}
    assert Path(files.html).read_text(encoding="utf-8") == to_page(CARD)


def test_nothing_is_written_that_nobody_wants(tmp_path):
    assert write_report(ReportFiles(), CARD, {}) == []
    assert list(tmp_path.iterdir()) == []


def test_home_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    told(ReportFiles("~/run.json"))
    assert (tmp_path / "run.json").exists()


def test_folder_and_missing_folder(tmp_path):
    assert told(ReportFiles(str(tmp_path))).endswith("was not written: it is a folder")
    assert f"there is no folder {tmp_path / 'no'}" in told(ReportFiles(html=str(tmp_path / "no" / "x")))


@pytest.mark.timeout(10)
def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert told(ReportFiles(str(tmp_path / "pipe"))).endswith("it is no ordinary file")


@pytest.mark.parametrize("name", ["\0", "x" * 10_000, "~nobody-of-that-name/x", "\ud800/x", "/proc/version"])
def test_impossible_paths_cost_one_line(name):
    assert "was not written: " in told(ReportFiles(name))


def test_page_stands_alone():
    page = to_page(CARD)
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert f"<title>{CARD.title}</title>" in page
    assert not [part for part in ("<script", "<link", "@import", "url(", 'src="http') if part in page]
    assert "color-scheme: light dark" in page


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_stays_text_in_a_page(text):
    for card in hostile_cards(text):
        head, _, body = to_page(card).partition("<body>")
        assert "<img" not in head
        assert [bad for bad in Outline(body.partition("</body>")[0]).bad if bad in TAGS] == []
