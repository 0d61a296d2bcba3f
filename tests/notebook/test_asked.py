"""`%torchcheck memory`, `holders` and `free` in a real shell."""

import gc
import re
import weakref

import pytest
import torch

from tests.cells import a_notebook
from tests.notebook.samples import SETUP

BIG = "big = torch.randn(1_000, 300)\nhistory = {'loss': [torch.randn(500, 300)]}"
FAILS = "def step():\n    hidden = torch.randn(700, 300)\n    raise ValueError('no')\nstep()"


@pytest.fixture
def notebook():
    gc.collect()  # these ask about the whole heap: what earlier tests left there is no part of the answer
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(BIG)
        yield notebook


def answer(notebook, source):
    """The one text that a cell of one magic publishes."""
    before = len(notebook.published)
    notebook.run(source)
    assert notebook.errors[-1] is None
    (data,) = notebook.published[before:]
    return data["text/plain"]


def test_memory_names_the_largest_holders(notebook):
    text = answer(notebook, "%torchcheck memory")
    assert "0 B of it not explained" in text
    assert all(name in text for name in ("big", "1.14 MB", "history['loss'][0]", "586 KB", "tensor", "█"))


def test_memory_is_a_picture_that_needs_no_script(notebook):
    notebook.run("%torchcheck memory")
    page = notebook.published[-1]["text/html"]
    assert 'src="data:image/gif;base64,' in page
    assert "<script" not in page


def test_memory_since_a_cell(notebook):
    number = notebook.shell.execution_count - 1
    notebook.run("late = torch.randn(100, 300)")
    text = answer(notebook, f"%torchcheck memory --since {number}")
    assert "late" in text
    assert "big" not in text


def test_holders_of_a_name_an_expression_and_a_number(notebook):
    assert "del big" in answer(notebook, "%torchcheck holders big")
    assert "del history['loss'][0]" in answer(notebook, "%torchcheck holders history['loss'][0]")
    answer(notebook, "%torchcheck memory")
    assert "holder of `big`" in answer(notebook, "%torchcheck holders 1")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("holders", "takes a name, an expression"),
        ("holders nothing_here", "gives NameError"),
        ("holders 99", "has no number 99"),
        ("memory --since", "takes no words"),
        ("memory --since x", "takes no words"),
        ("free --now", "takes --yes"),
    ],
)
def test_what_it_does_not_understand_gets_one_line(notebook, line, expected):
    text = answer(notebook, f"%torchcheck {line}")
    assert expected in text
    assert "\n" not in text.strip()


def test_free_says_first_and_does_nothing(notebook):
    notebook.run("torch.randn(400, 300)")
    text = answer(notebook, "%torchcheck free")
    assert re.search(r"old outputs +4[67]\d KB", text), text
    assert "del big" in text
    assert any(isinstance(value, torch.Tensor) for value in notebook.shell.user_ns["Out"].values())


def test_free_lets_go_of_outputs_and_cycles_and_keeps_variables(notebook):
    notebook.run("torch.randn(400, 300)")
    shown = weakref.ref(notebook.shell.user_ns["_"])
    notebook.run("7")
    notebook.run("class C: pass\nc = C(); c.me = c; c.data = torch.randn(900, 300); ref = c.data\nimport weakref, gc")
    notebook.run("gc.disable(); died = weakref.ref(ref); del c, ref")
    try:
        text = answer(notebook, "%torchcheck free --yes")
    finally:
        gc.enable()
    assert shown() is None
    assert notebook.shell.user_ns["died"]() is None
    assert "old outputs" in text
    assert "reference cycles" in text
    assert "came free" in text
    assert notebook.shell.user_ns["big"].shape == (1_000, 300)
    assert 7 in notebook.shell.user_ns["Out"].values()


def test_free_drops_the_last_exception_only_when_asked(notebook):
    notebook.run(FAILS)
    notebook.run("import sys")
    assert "with --traceback" in answer(notebook, "%torchcheck free")
    answer(notebook, "%torchcheck free --yes")
    notebook.run("kept = hasattr(sys, 'last_value')")
    assert notebook.shell.user_ns["kept"]
    text = answer(notebook, "%torchcheck free --yes --traceback")
    assert "the last exception" in text
    assert "820 KB" in text
    notebook.run("kept = hasattr(sys, 'last_value')")
    assert not notebook.shell.user_ns["kept"]


def test_memory_as_data(notebook):
    notebook.run("import torch_inspector\nreport = torch_inspector.memory()\nheld = torch_inspector.holders(big)")
    report, held = notebook.shell.user_ns["report"], notebook.shell.user_ns["held"]
    rows = {row.path: row for row in report.rows}
    assert (rows["big"].kind, rows["big"].device, rows["big"].nbytes) == ("tensor", "cpu", 1_200_000)
    counted = report.explained_bytes("cpu") + report.unexplained_bytes("cpu")
    assert counted == sum(row.nbytes for row in report.rows if row.device == "cpu")
    assert report.total_bytes("cpu") is None
    assert held.rows[0].path == "big"
