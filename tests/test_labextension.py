"""The files around the sidebar: its lock file, its version, and what it may know of the world."""

import json
import re
from pathlib import Path

import pytest

import torch_inspector
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.channel import COMM_ID, TARGET

FOLDER = Path(__file__).resolve().parents[1] / "labextension"
SOURCES = sorted(FOLDER.glob("src/*.ts"))


def test_version_is_that_of_the_package():
    for name in ("package.json", "package-lock.json"):
        assert json.loads((FOLDER / name).read_text(encoding="utf-8"))["version"] == torch_inspector.__version__


def test_lock_file_names_no_registry():
    packages = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    settings = (FOLDER / ".npmrc").read_text(encoding="utf-8").split()
    assert {"omit-lockfile-registry-resolved=true", "ignore-scripts=true"} <= set(settings)


def test_both_sides_speak_of_the_same():
    text = (FOLDER / "src" / "message.ts").read_text(encoding="utf-8")
    names = dict(re.findall(r"export const (\w+) = '?([\w.]+)'?;", text))
    assert names == {"VERSION": str(messages.VERSION), "TARGET": TARGET, "COMM_ID": COMM_ID}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_files_are_small_and_say_what_they_are_for(file):
    text = file.read_text(encoding="utf-8")
    assert text.startswith("/**")
    assert file.name == "page_texts.ts" or text.count("\n") < 260
