"""One item of the plan at a time, as the sidebar asks for it."""

import gc
import weakref

import pytest
import torch

from tests.cells import a_notebook
from tests.notebook.samples import SETUP
from torch_inspector import asking
from torch_inspector.account import MemoryRow
from torch_inspector.notebook.freeing import let_go_of, plan, word_for


@pytest.fixture
def notebook():
    gc.collect()
    with a_notebook() as notebook:
        notebook.run(SETUP)
        yield notebook


def let_go(notebook, word, path=""):
    """Lets go of an item, and says what the plan holds after that."""
    let_go_of(notebook.shell, asking.memory(shell=notebook.shell), word, path)
    return {item.word for item in plan(asking.memory(shell=notebook.shell))}


def test_one_output_of_several(notebook):
    notebook.run("torch.randn(400, 300)")
    first = weakref.ref(notebook.shell.user_ns["_"])
    notebook.run("torch.randn(500, 300)")
    second = weakref.ref(notebook.shell.user_ns["_"])
    number = notebook.shell.execution_count - 2
    left = let_go(notebook, "outputs", f"Out[{number}]")
    assert (first(), second() is None, left) == (None, False, {"outputs"})
    assert let_go(notebook, "outputs") == set()
    assert second() is None


def test_what_else_hangs_on_the_shell_is_no_output(notebook):
    notebook.shell.user_ns_hidden["cache"] = torch.randn(400, 300)
    report = asking.memory(shell=notebook.shell)
    assert [row.kind for row in report.rows if row.nbytes == 480_000] == ["IPython"]
    assert {item.word for item in plan(report)} == set()
    notebook.shell.user_ns_hidden.pop("cache")


def test_cycles_leave_outputs_and_the_exception(notebook):
    notebook.run("def step():\n    hidden = torch.randn(700, 300)\n    raise ValueError('no')\nstep()")
    notebook.run("torch.randn(400, 300)")
    assert let_go(notebook, "cycles") == {"outputs", "exception"}
    assert let_go(notebook, "exception") == {"outputs"}


def test_caches_are_torchs_and_none_is_started_for_it(notebook):
    assert let_go_of(notebook.shell, asking.memory(shell=notebook.shell), "cache") == 0
    assert not torch.cuda.is_initialized()


@pytest.mark.parametrize(
    ("path", "kind", "word"),
    [
        ("Out[3]", "IPython", "outputs"),
        ("_[0]", "IPython", "outputs"),
        ("IPython.something", "IPython", None),
        ("objects in a cycle", "cycle", "cycles"),
        ("hidden in step()", "exception", "exception"),
        ("losses[0]", "tensor", None),
        ("model.weight", "parameter", None),
    ],
)
def test_what_belongs_to_the_user_is_not_offered(path, kind, word):
    assert word_for(MemoryRow(path, kind, "cpu", 1)) == word
