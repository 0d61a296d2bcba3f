"""The README names everything that a user can type."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import torch_inspector
from torch_inspector.notebook.magics import Torchcheck
from torch_inspector.notebook.settings import TorchInspector
from torch_inspector.pitfalls import all_pitfalls

ROOT = Path(__file__).resolve().parents[1]
WORDS = list(Torchcheck(SimpleNamespace()).words)  # type: ignore[arg-type]  # only its words are read
SETTINGS = list(TorchInspector.class_own_traits(config=True))
API = [name for name in torch_inspector.__all__ if "ipython_extension" not in name]


@pytest.fixture(scope="module")
def readme():
    """Its text."""
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def code(readme):
    """All that stands between backticks."""
    return re.findall(r"`([^`\n]+)`", readme)


@pytest.mark.parametrize("word", WORDS)
def test_readme_names_every_word(code, word):
    assert any(re.fullmatch(rf"(%torchcheck )?{word}( NAME)?", span) for span in code)


@pytest.mark.parametrize("name", SETTINGS)
def test_readme_names_every_setting(code, name):
    assert any(re.fullmatch(rf"(%config )?(c\.)?(TorchInspector\.)?{name}( = .*)?", span) for span in code)


@pytest.mark.parametrize("name", API)
def test_readme_names_every_function(readme, name):
    assert f"{name}(" in readme


@pytest.mark.parametrize(
    "text",
    [
        "%load_ext torch_inspector", "%unload_ext torch_inspector", "%%torchcheck", "# torchcheck: ignore[",
        "make test", "make demo", "docs/architecture.md",
    ],
)  # fmt: skip
def test_readme_names_the_doors(readme, text):
    assert text in readme


def test_readme_names_every_pitfall(readme):
    assert [pitfall.slug for pitfall in all_pitfalls() if pitfall.slug not in readme] == []
