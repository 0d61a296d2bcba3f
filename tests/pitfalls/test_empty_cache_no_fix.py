"""`empty_cache()` where it cannot help, and where it may."""

import pytest

from tests.cells import findings_in
from tests.fakes import a_count, a_memory, a_place, a_run, a_snapshot, a_tensor, an_error
from torch_inspector.facts import EmptiedFact
from torch_inspector.pitfalls.memory.empty_cache_no_fix import check

SETUP = """
import gc, time
import torch
from torch import nn
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(rows=16):
    optimizer.zero_grad()
    model(torch.randn(rows, 8)).pow(2).mean().backward()
    optimizer.step()
"""


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="empty-cache-no-fix", fails=False)]


EVALUATION = """
model.eval()
with torch.no_grad():
    for i in range(9):
        y = model(torch.ones(2, 8))
        torch.cuda.empty_cache()
model.train();
"""
MESSAGE = """
try:
    step()
except RuntimeError as e:
    if "out of memory" in str(e):
        print("no memory")
        torch.cuda.empty_cache()
    else:
        raise e
"""
FOUND = {
    "in each step": ("for i in range(20):\n    step()\n    torch.cuda.empty_cache()", 3),
    "in an evaluation": (EVALUATION, 6),
    "all that a block does": (
        "try:\n    step()\nexcept torch.OutOfMemoryError:\n    gc.collect()\n    torch.cuda.empty_cache()",
        5,
    ),
    "the message is read": (MESSAGE, 7),
}
QUIET = {
    "between epochs": "for e in range(10):\n    for i in range(4):\n        step()\n    torch.cuda.empty_cache()",
    "a few calls": "for e in range(4):\n    step()\n    torch.cuda.empty_cache()",
    "no training": "for e in range(10):\n    torch.cuda.empty_cache()",
    "once": "del model\ngc.collect()\ntorch.cuda.empty_cache()\nmodel = nn.Linear(8, 1)",
    "measured": "for n in range(10):\n    torch.cuda.empty_cache()\n    t = time.perf_counter()\n    step(n + 1)",
    "smaller in the next turn": (
        "for rows in (64, 32, 16):\n    try:\n        step(rows)\n        break\n    except torch.OutOfMemoryError:\n"
        "        torch.cuda.empty_cache()"
    ),
    "smaller afterwards": (
        "try:\n    step(64)\nexcept torch.OutOfMemoryError:\n    torch.cuda.empty_cache()\nstep(16)\nprint('done')"
    ),
    "lets go": "x = 1\ntry:\n    step()\nexcept torch.OutOfMemoryError:\n    del x\n    torch.cuda.empty_cache()",
    "tidies and fails": "try:\n    step()\nexcept torch.OutOfMemoryError:\n    torch.cuda.empty_cache()\n    raise",
    "another error": "try:\n    step()\nexcept ValueError:\n    torch.cuda.empty_cache()",
    "falls back": "try:\n    step()\nexcept torch.OutOfMemoryError:\n    torch.cuda.empty_cache()\n    model.cpu()",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, line = FOUND[name]
    assert found(source) == [(line, "hint")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name]) == []


GB = 1 << 30


def after_a_failure(before_nbytes, after_nbytes, **changes):
    emptied = EmptiedFact(a_place(1), "torch.cuda.empty_cache", 1, 0.01, started=True)
    failed = a_run(error=an_error("CUDA out of memory. Tried to allocate 2.00 GiB.", kind="OutOfMemoryError"))
    before = a_memory("cuda:0", allocated_nbytes=before_nbytes, reserved_nbytes=12 * GB)
    after = a_memory("cuda:0", allocated_nbytes=after_nbytes, reserved_nbytes=10 * GB)
    tensor = a_tensor("photos", device="cuda:0", nbytes=6 * GB, storage_nbytes=6 * GB)
    given = {"earlier": (failed,), "before": a_snapshot(before), "after": a_snapshot(after, tensor), **changes}
    return list(check(a_run(emptied, source="torch.cuda.empty_cache()", **given)))


def test_freed_nothing_after_memory_ran_out():
    (finding,) = after_a_failure(9 * GB, 9 * GB)
    assert finding.severity == "warning"
    assert "cuda:0 holds 9.00 GB" in finding.message
    assert "`photos`" in finding.fix


def test_silent_where_something_was_freed_or_nothing_had_failed():
    assert after_a_failure(9 * GB, 3 * GB) == []
    assert after_a_failure(9 * GB, 9 * GB, earlier=()) == []
    assert after_a_failure(0, 0) == []


def test_calls_that_take_time_are_a_warning():
    fact = EmptiedFact(a_place(3), "torch.cuda.empty_cache", 100, 1.0, started=True)
    (finding,) = check(a_run(fact, a_count("step", 100), duration_s=10.0))
    assert finding.severity == "warning"
    (finding,) = check(a_run(fact, a_count("step", 100), duration_s=100.0))
    assert finding.severity == "hint"
