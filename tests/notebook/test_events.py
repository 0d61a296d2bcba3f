"""The session stays in step whatever a cell does, and nothing is wrapped between cells."""

import contextlib
import io
import signal

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from tests.cells import a_notebook
from tests.notebook.samples import GOOD_LOOP, LOOP, SETUP, SLUG, found, in_step, line_of
from torch_inspector.facts import Run

# IPython's own, about `exit`.
pytestmark = pytest.mark.filterwarnings("ignore:To exit")

ODD = {
    "raises": "1 / 0",
    "raises after await": "import asyncio\nawait asyncio.sleep(0)\n1 / 0",
    "raises under time": "%%time\n1 / 0",
    "raises under capture": "%%capture\n1 / 0",
    "raises under the report": "%%torchcheck\n1 / 0",
    "syntax error": "x = = 1",
    "syntax error under time": "%%time\nx = = 1",
    "syntax error under the report": "%%torchcheck\nx = = 1",
    "unfinished string": "'''abc",
    "null byte": "x = 1\0",
    "unknown magic": "%no_such_magic",
    "unknown cell magic": "%%no_such_magic\nx",
    "exit": "raise SystemExit(3)",
    "exit after await": "import asyncio\nawait asyncio.sleep(0)\nraise SystemExit(3)",
    "interrupt": "raise KeyboardInterrupt",
    "interrupt under time": "%%time\nraise KeyboardInterrupt",
    "interrupt after await": "import asyncio\nawait asyncio.sleep(0)\nraise KeyboardInterrupt",
    "generator exit": "raise GeneratorExit",
    "nested cells": "get_ipython().run_cell('get_ipython().run_cell(\"1 + 1\")')",
    "nested cell that raises": "get_ipython().run_cell('1 / 0')\n",
    "nested cell in the history": "_ = get_ipython().run_cell('1 + 1', store_history=True)",
    "silent cell inside": "_ = get_ipython().run_cell('1 + 1', silent=True)",
    "cell in a thread": (
        "import threading\n"
        "thread = threading.Thread(target=get_ipython().run_cell, args=('in_thread = 1',))\n"
        "thread.start()\nthread.join()"
    ),
    "empty": "",
    "blank": "\n\n",
    "comment": "# nothing",
    "variables gone": "%reset -f\n" + SETUP,
    "history gone": "%reset -f out",
}


@pytest.fixture
def notebook():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        yield notebook


@pytest.mark.parametrize("source", ODD.values(), ids=ODD)
def test_in_step_after(notebook, source):
    originals = torch.autograd.backward, torch.nn.Module.__call__
    notebook.run(source)
    assert (torch.autograd.backward, torch.nn.Module.__call__) == originals
    in_step(notebook)
    assert (torch.autograd.backward, torch.nn.Module.__call__) == originals


@pytest.mark.parametrize("code", ["time.sleep(5)", "await asyncio.sleep(5)", "%time time.sleep(5)"])
def test_in_step_after_ctrl_c(notebook, code):
    notebook.run("import asyncio, signal, time")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        notebook.run(f"signal.setitimer(signal.ITIMER_REAL, 0.1)\n{code}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert type(notebook.errors[-1]) is KeyboardInterrupt
    for _ in range(2):
        in_step(notebook)


@pytest.mark.parametrize("last", ["1 / 0", "raise KeyboardInterrupt", "raise SystemExit", "await no_such_name"])
def test_cell_that_ends_with_an_error_is_judged(notebook, last):
    run = notebook.run(LOOP + last)
    assert found(run) == [(SLUG, 2, 4)]
    assert (run.error.kind, run.error.place.line) == (type(notebook.errors[-1]).__name__, 5)
    in_step(notebook)


def test_syntax_error_is_a_run_with_an_error(notebook):
    assert notebook.run("x = = 1").error.kind == "SyntaxError"


@pytest.mark.parametrize("head", ["", "%%time\n"])
def test_script_has_the_line_that_runs_it(notebook, tmp_path, head):
    path = tmp_path / "script.py"
    path.write_text(SETUP + LOOP, encoding="utf-8")
    source = head + f"a = 1\n%run {path}"
    assert found(notebook.run(source)) == [(SLUG, 2, line_of(source, "%run"))]
    in_step(notebook)


def test_two_notebooks_at_once_do_not_disturb_each_other(notebook):
    original = torch.autograd.backward
    inner = InteractiveShell()
    with contextlib.redirect_stdout(io.StringIO()):
        inner.run_cell("1 + 1")
    assert torch.autograd.backward is original
    in_step(notebook)


def test_one_run_per_cell_and_numbers_follow_the_prompt(notebook):
    for source in ("1", "2", "get_ipython().run_cell('3')", "1 / 0", "%%capture\n4"):
        notebook.run(source)
    assert [run.cell.number for run in notebook.runs] == [1, 2, 3, 4, 5, 6]
    assert all(type(run) is Run for run in notebook.runs)


def test_mistake_made_again_is_found_again(notebook):
    notebook.run(LOOP.replace("range(4)", "range(12)"))
    assert found(notebook.run(GOOD_LOOP)) == []
    in_step(notebook)


def test_cells_outside_the_history_are_judged_too(notebook):
    with contextlib.redirect_stdout(io.StringIO()):
        notebook.shell.run_cell(LOOP, store_history=False)
    assert notebook.extension.session.runs[-1].findings[0].line == 4
    in_step(notebook)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_exception_inside_the_inspector_stays_inside(notebook, monkeypatch, error):
    def fail(*_args, **_kwargs):
        raise error

    last = notebook.shell.run_cell
    session = notebook.extension.session
    with monkeypatch.context() as patch:
        patch.setattr(session, "begin", fail)
        patch.setattr(session, "end", fail)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = last("inner = 1")
    assert (result.success, out.getvalue()) == (True, "")
    assert session.failures.counts == {"pre_run_cell": 1, "post_run_cell": 1}
    session.failures.counts.clear()
    in_step(notebook)
