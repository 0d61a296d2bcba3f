"""Exceptions that keep tensors, and those that keep none that matters."""

import sys

import pytest

from tests.cells import a_notebook
from tests.fakes import a_place, a_run, a_snapshot, an_error
from torch_inspector.facts import LocalFact, TracebackFact
from torch_inspector.pitfalls.memory.traceback_pins_tensors import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
def attempt(rows):
    big = torch.ones(rows, 1024)
    squared = big * big
    if rows > 512:
        raise ValueError("too many")
    return squared.sum()
"""
STORE = """
failure = None
try:
    attempt(1024)
except ValueError as error:
    failure = error
"""


def found(*cells, min_bytes=None):
    """Cell, line, severity and message of each finding."""
    with a_notebook(min_bytes=min_bytes) as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        return [
            (index - 1, finding.line, finding.severity, finding.message)
            for index, run in enumerate(notebook.runs)
            if run is not None
            for finding in run.findings
            if finding.slug == "traceback-pins-tensors"
        ]


def test_the_last_error():
    ((cell, line, severity, message),) = found("total = attempt(1024)", "total = 3")
    assert (cell, line, severity) == (0, 9, "hint")
    assert "8.00 MB" in message
    assert "`big` in attempt" in message
    assert "`squared` in attempt" in message


def test_much_of_it_is_a_warning():
    ((_, _, severity, _),) = found("attempt(16384)")
    assert severity == "warning"


def test_a_variable_that_keeps_an_error():
    ((cell, line, _, message),) = found(STORE, "x = 1", "y = 2")
    assert (cell, line) == (0, 6)
    assert "`failure` is a ValueError" in message
    assert "8.00 MB" in message


def test_the_same_cell_run_again():
    assert [cell for cell, *_ in found(STORE, STORE)] == [0, 1]


def test_a_list_of_errors_is_one_finding():
    cell = """
errors = []
for rows in (1024, 2048, 100):
    try:
        attempt(rows)
    except ValueError as error:
        errors.append((rows, error))
"""
    ((_, line, _, message),) = found(cell)
    assert line == 7
    assert "2 exceptions in `errors`" in message
    assert "24.0 MB" in message


def test_an_error_stored_by_a_function_of_an_earlier_cell():
    sweep = """
results = {}
def sweep():
    table = torch.ones(1024, 512)
    try:
        attempt(1024)
    except ValueError as error:
        results["wide"] = error
"""
    ((cell, _, _, message),) = found(sweep, "sweep()")
    assert cell == 1
    assert "`results['wide']`" in message
    assert "10.0 MB" in message


def test_the_cause_of_an_error_counts():
    cell = """
try:
    try:
        attempt(1024)
    except ValueError as error:
        raise RuntimeError("sweep failed") from error
except RuntimeError as error:
    failure = error
"""
    ((_, line, _, message),) = found(cell)
    assert line == 8
    assert "RuntimeError" in message
    assert "8.00 MB" in message


def test_an_error_in_an_object():
    cell = """
class Trial:
    pass
trial = Trial()
try:
    attempt(1024)
except ValueError as error:
    trial.error = error
"""
    ((_, line, _, message),) = found(cell)
    assert line == 8
    assert "`trial.error`" in message


def test_activations_behind_a_loss():
    cell = """
def step():
    photos = torch.rand(2048, 64)
    wide = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
    loss = wide(photos).mean()
    loss.backward(torch.ones(3))
step()
"""
    ((_, line, _, message),) = found(cell)
    assert line == 6
    assert "`loss` in step, 4.00 MB" in message


FAIL = """
def fail():
    x = torch.ones(1 << 19)
    1 / 0
"""


def test_the_fix_lets_go_of_the_last_error():
    with a_notebook() as notebook:
        for source in (SETUP, FAIL, "fail()"):
            notebook.run(source)
        (finding,) = notebook.runs[-1].findings
        assert getattr(sys, "last_value", None) is not None
        notebook.shell.run_cell(finding.fix.split("  #")[0])
        assert getattr(sys, "last_value", None) is None


CLOSURE = """
def make():
    big = torch.ones(1024, 1024)
    def fail():
        here = big
        1 / 0
    return fail
"""
GRAPH = """
w = torch.ones(1024, 1024, requires_grad=True)
loss = (w * 2).relu().mean()
def fail(l):
    here = l
    1 / 0
fail(loss)
"""
QUIET = {
    "small tensors": ["attempt(513) if False else None\ndef small():\n    x = torch.ones(64)\n    1 / 0\nsmall()"],
    "no tensor": ["1 / 0"],
    "the batch is a variable": ["big = torch.ones(1024, 1024)\ndef fail(x):\n    1 / 0\nfail(big)"],
    "a view of a variable": ["big = torch.ones(1024, 1024)\ndef fail(x):\n    y = x[10:]\n    1 / 0\nfail(big)"],
    "in a container": ["data = {'a': [torch.ones(1024, 1024)]}\ndef fail(x):\n    1 / 0\nfail(data['a'][0])"],
    "behind a closure": [CLOSURE, "f = make()", "f()"],
    "shown in Out": ["torch.ones(1024, 1024);", "_big = torch.ones(1024, 1024)\ndef fail(x):\n    1 / 0\nfail(_big)"],
    "held by a graph of a variable": [GRAPH],
    "globals only": ["big = torch.ones(1024, 1024)\nbig @ torch.ones(3, 3)"],
    "handled": ["try:\n    attempt(1024)\nexcept ValueError:\n    total = attempt(512)"],
    "text kept": ["errors = []\ntry:\n    attempt(1024)\nexcept ValueError as error:\n    errors.append(str(error))"],
    "without traceback": [
        "try:\n    attempt(1024)\nexcept ValueError as error:\n    failure = error.with_traceback(None)"
    ],
    "never raised": ["failure = ValueError(torch.ones(1024, 1024).shape)"],
    "debugging": ["%pdb off\nattempt(1024)", "attempt(1024)"],
    "looking into frames": [
        "try:\n    attempt(1024)\nexcept ValueError as error:\n    f = error; x = f.__traceback__.tb_frame"
    ],
    "a clean cell after the error is silent": ["1 / 0", "attempt(512)", "attempt(512)"],
    "a syntax error": ["def broken(:"],
    "an interrupt at the top": ["big = torch.ones(1024, 1024)\nfor i in range(3):\n    raise KeyboardInterrupt"],
    "returned models": ["def make():\n    return nn.Linear(1024, 1024)\nm = make()\nm(torch.ones(3))"],
}


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_a_failed_attempt_fixed_and_run_again():
    assert [cell for cell, *_ in found("rows = 1024", "attempt(rows)", "rows = 10", "attempt(rows)")] == [1]


def _fact(**changes):
    local = LocalFact("big", "attempt", a_place(3), 8 << 20, shape=(1024, 2048), device="cpu")
    return TracebackFact("sys.last_value", "ValueError", 5, 1, 8 << 20, (local,))._replace(**changes)


def test_an_error_for_want_of_memory_is_told_elsewhere():
    error = an_error("CUDA out of memory. Tried to allocate 2.00 GiB.", kind="OutOfMemoryError")
    assert list(check(a_run(after=[_fact()], error=error))) == []
    assert len(list(check(a_run(after=[_fact()], error=an_error())))) == 1


def test_what_was_kept_before_is_old():
    run = a_run(before=a_snapshot(_fact()), after=[_fact()], error=an_error())
    assert list(check(run)) == []


def test_the_fix_fits_the_path():
    fixes = [
        next(iter(check(a_run(after=[_fact(path=path, others=others)], error=an_error())))).fix
        for path, others in (("failure", ()), ("errors[2]", ()), ("failure", ("sys.last_value",)))
    ]
    assert fixes[0] == "del failure"
    assert fixes[1].startswith("errors[2].__traceback__ = None")
    assert fixes[2].startswith("traceback.clear_frames(failure.__traceback__)")


def test_the_fix_for_keys_that_cannot_be_written():
    both = [_fact(path="failed[…]"), _fact(path="failed[…]")]
    (finding,) = check(a_run(after=both, error=an_error()))
    compile(finding.fix, "fix", "exec")
    assert finding.fix.startswith("for error in failed.values():")
    (finding,) = check(a_run(after=[_fact(path="failed[…]['error']")], error=an_error()))
    assert finding.fix.startswith("del failed  #")


PASSED_ON = """
class Passing(nn.Module):
    def __init__(self):
        super().__init__()
        self.given, self.taken = nn.Linear(256, 64), nn.Linear(64, 64)
    def forward(self, h, at):
        out = torch.relu(self.given(torch.cat([h[at], h[at]], 1))).sum(0, keepdim=True)
        return self.taken(torch.cat([out, out], 1))
layer, h, at = Passing(), torch.randn(1000, 128), torch.randint(0, 1000, (9000,))
"""


def test_the_graph_is_that_of_the_users_own_variable():
    ((_, _, _, message),) = found(PASSED_ON, "layer(h, at)")
    first = message.partition(" holds: ")[2].partition(";")[0]
    assert first.startswith("`out` in forward")
    assert first.endswith(", most of it in the graph behind it")
