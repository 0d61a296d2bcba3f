"""A small training notebook with one mistake, and ways to type it in."""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator
from typing import Any

from tests.cells import Notebook, a_notebook
from torch_inspector.facts import Run
from torch_inspector.notebook import extension

SLUG = "missing-zero-grad"
RUN_MIME = "application/vnd.torch-inspector.run+json"
MIMES = {"text/plain", "text/html", RUN_MIME}

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.rand(8, 3), torch.rand(8, 1)
"""
GUILTY = "optimizer.step()"
LOOP = """\
for _ in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
GOOD_LOOP = LOOP.replace("    loss =", "    optimizer.zero_grad()\n    loss =")


def as_function(code: str = LOOP) -> str:
    """The same as a function `train`."""
    return "def train():\n" + textwrap.indent(code, "    ")


def line_of(source: str, text: str = GUILTY) -> int:
    """The line, as typed, that holds a text."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def found(run: Run | None) -> list[tuple[str, int | None, int | None]]:
    """Slug, cell and line of all that a run found."""
    assert run is not None, "the cell was not looked at"
    return [(finding.slug, finding.cell, finding.line) for finding in run.findings]


def texts(notebook: Notebook) -> list[str]:
    """The plain text of everything published so far."""
    return [data["text/plain"] for data in notebook.published]


def in_step(notebook: Notebook) -> None:
    """Asserts that the next cell is judged, and judged right."""
    run = notebook.run(LOOP)
    assert found(run) == [(SLUG, notebook.shell.execution_count - 1, line_of(LOOP))]


@contextlib.contextmanager
def a_bare_notebook() -> Iterator[Notebook]:
    """A shell without the extension, in which `%load_ext` and its like can be typed."""
    with a_notebook() as notebook:
        extension.unload(notebook.shell)
        try:
            yield notebook
        finally:
            extension.load(notebook.shell)


def typed(notebook: Notebook, source: str) -> tuple[Any, str]:
    """Runs a cell whether or not the extension is loaded; gives IPython's result and all that was printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        result = notebook.shell.run_cell(source, store_history=True)
    return result, out.getvalue()
