"""The README names everything that a user can type."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import torch_inspector
from tests.cells import a_notebook
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


def shown_of(section):
    """The lines of the last block of text in a section, without those that stand for others."""
    block = re.findall(r"```text\n(.*?)```", section, re.DOTALL)[-1]
    return [line for line in block.splitlines() if line.strip() and line.strip() != "..."]


def section_of(readme, title):
    return readme.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_cells_to_try_are_answered_with_what_the_readme_shows(readme):
    section = section_of(readme, "Three cells to try")
    with a_notebook() as notebook:
        for cell in ("", *re.findall(r"```python\n(.*?)```", section, re.DOTALL)):
            notebook.run(cell or "1")
        answered = notebook.published[-1]["text/plain"].splitlines()
    assert [line for line in answered if line in shown_of(section)] == shown_of(section)


def test_the_account_has_the_columns_that_the_readme_shows(readme):
    heads = ("cpu: ", "no.  held by ")
    shown = [line for line in shown_of(section_of(readme, "Why is my memory full")) if line.strip().startswith(heads)]
    with a_notebook() as notebook:
        notebook.run("import torch\nx, y = torch.ones(500_000), [torch.ones(9) for _ in range(4)]")
        notebook.run("%torchcheck memory")
        answered = notebook.published[-1]["text/plain"].splitlines()
    told = [line for line in answered if line.strip().startswith(heads)]
    assert [re.sub(r"[\d.]+ \w?B|  +", "", line) for line in told] == [
        re.sub(r"[\d.]+ \w?B|  +", "", line) for line in shown
    ]
